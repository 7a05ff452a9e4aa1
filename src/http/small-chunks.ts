// Against clients that send chunks of a few bytes, to fill the memory.

/** A part is pushed when it has this many bytes. A chunk with as many is no small one. */
const PART_BYTES = 4096;

/**
 * Collects the small chunks of a body that nobody reads yet. Node would keep each of them as an object of its own, which takes about
 * 170 bytes: 64 KiB of chunks with one byte took 11 MB.
 */
export class SmallChunks {
  private part: Buffer | undefined;
  private length = 0;

  /** @param push receives each part when it is full */
  constructor(private readonly push: (part: Buffer) => void) {}

  /** @returns whether the chunk is small, and will be part of what is pushed */
  add(chunk: Buffer): boolean {
    if (this.length + chunk.length > PART_BYTES) this.flush();
    if (chunk.length >= PART_BYTES) return false;
    this.part ??= Buffer.allocUnsafeSlow(PART_BYTES);
    chunk.copy(this.part, this.length);
    this.length += chunk.length;
    return true;
  }

  /** Pushes what was collected. */
  flush(): void {
    const { part, length } = this;
    this.part = undefined;
    this.length = 0;
    if (part !== undefined) this.push(part.subarray(0, length));
  }
}
