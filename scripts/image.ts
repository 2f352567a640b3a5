/**
 * Builds the image selfsame/selfsame for clusters whose own nodes run our Jobs, as an OCI archive, without docker:
 *
 *   npm run image [-- OUT]     OUT: .cache/selfsame-image.tar
 *
 * For the architecture of this machine, with its Node and libraries. See docs/image.md.
 */
import { mkdirSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { PROGRAM_IMAGE } from '#api/names.ts';
import { VERSION } from '#lib/version.ts';
import { imageContents, NODE, PROGRAM_DIR, USER } from './image/contents.ts';
import { writeImage } from './image/oci-image.ts';

const ROOT = join(import.meta.dirname, '..');
const ARCHITECTURES: Readonly<Record<string, string>> = { x64: 'amd64', arm64: 'arm64' };

const [out = join(ROOT, '.cache/selfsame-image.tar'), ...more] = process.argv.slice(2);
const architecture = ARCHITECTURES[process.arch];
if (more.length > 0) {
  process.stderr.write('Usage: npm run image [-- OUT]\n');
  process.exit(2);
}
if (architecture === undefined) throw new Error(`Cannot build an image for ${process.arch}; expected x64 or arm64`);

const path = resolve(out);
mkdirSync(dirname(path), { recursive: true });
const reference = `${PROGRAM_IMAGE}:${VERSION}`;
const digest = await writeImage(path, imageContents(ROOT, process.execPath), {
  reference,
  architecture,
  config: {
    Entrypoint: [`/${NODE}`, '--disable-warning=ExperimentalWarning', `/${PROGRAM_DIR}/src/main.ts`],
    Cmd: ['help'],
    User: `${USER}:${USER}`,
    WorkingDir: '/',
    Env: ['PATH=/usr/local/bin', 'NODE_ENV=production'],
    Labels: { 'org.opencontainers.image.title': PROGRAM_IMAGE, 'org.opencontainers.image.version': VERSION },
  },
});
process.stdout.write(`${path}\n${reference} for ${architecture}, ${digest}\n`);
