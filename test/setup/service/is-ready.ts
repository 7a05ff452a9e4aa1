import { fetchDocumented, noResponse } from '../http/fetch-documented.js';

/** Whether a service accepts plants now. */
export async function isReady(url: string): Promise<boolean> {
  const response = await fetchDocumented(`${url}/health/ready`).catch(noResponse);
  return response?.ok ?? false;
}
