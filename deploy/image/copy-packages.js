// Copies those files of the packages that the build in dist can load, with their licenses, to another folder:
// node deploy/image/copy-packages.js FOLDER
import { cpSync, globSync } from 'node:fs';
import { dirname, join } from 'node:path';
import process from 'node:process';
import { nodeFileTrace } from '@vercel/nft';

/** The service serves these files of Swagger UI, and does not load them. */
const SERVED = ['package.json', 'swagger-ui.css', 'swagger-ui-bundle.js'].map((file) =>
  join('node_modules/swagger-ui-dist', file),
);

const { fileList } = await nodeFileTrace(globSync('dist/**/*.js'));
const files = [...fileList, ...SERVED].filter((file) => file.startsWith('node_modules/'));
// A package whose files can be loaded has a package.json among them.
const folders = new Set(files.filter((file) => file.endsWith('/package.json')).map(dirname));
const licenses = [...folders].flatMap((folder) =>
  globSync(join(folder, '{LICEN[CS]E,licen[cs]e,COPYING,NOTICE}*')),
);
for (const file of [...files, ...licenses]) cpSync(file, join(process.argv[2], file));
