/** The image for clusters: built, read with standard tools, and run with nothing but its contents. */
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { gunzipSync } from 'node:zlib';
import { VERSION } from '#lib/version.ts';
import type { Loose } from '#test/support/test-api.ts';
import { writeImage } from '../../scripts/image/oci-image.ts';

const ROOT = join(import.meta.dirname, '../..');

async function directory(t: TestContext): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), 'selfsame-image-'));
  t.after(() => rm(dir, { recursive: true, force: true }));
  return dir;
}

const sha256 = (bytes: Buffer) => `sha256:${createHash('sha256').update(bytes).digest('hex')}`;

/** Unpacks the archive, follows index, manifest and config, and checks each digest and size. */
async function readImage(archive: string, dir: string) {
  await mkdir(dir);
  execFileSync('tar', ['-xf', archive, '-C', dir]);
  const parsed = async (path: string): Promise<Loose> => JSON.parse(await readFile(join(dir, path), 'utf8'));
  const blob = async ({ digest, size }: Loose): Promise<Buffer> => {
    const bytes = await readFile(join(dir, 'blobs', digest.replace(':', '/')));
    assert.equal(sha256(bytes), digest);
    assert.equal(bytes.length, size);
    return bytes;
  };
  assert.deepEqual(await parsed('oci-layout'), { imageLayoutVersion: '1.0.0' });
  const { manifests } = await parsed('index.json');
  const manifest: Loose = JSON.parse((await blob(manifests[0])).toString());
  const config: Loose = JSON.parse((await blob(manifest.config)).toString());
  assert.equal(manifest.layers.length, 1);
  const layer = gunzipSync(await blob(manifest.layers[0]));
  assert.deepEqual(config.rootfs.diff_ids, [sha256(layer)]);
  const [loadable] = await parsed('manifest.json');
  assert.equal(loadable.Config, `blobs/${manifest.config.digest.replace(':', '/')}`);
  assert.deepEqual(loadable.Layers, [`blobs/${manifest.layers[0].digest.replace(':', '/')}`]);
  return { manifests, config, layer, loadable };
}

async function unpack(layer: Buffer, dir: string): Promise<void> {
  await mkdir(dir);
  execFileSync('tar', ['-xf', '-', '-C', dir], { input: layer });
}

test('the same contents make the same image, and tar unpacks them unchanged', async (t) => {
  const dir = await directory(t);
  await writeFile(join(dir, 'content'), 'from a file');
  const long = `${'d'.repeat(90)}/${'e'.repeat(60)}/file`;
  const entries = [
    { type: 'directory', name: 'tmp', mode: 0o1777 },
    { type: 'file', name: long, mode: 0o644, from: Buffer.from('given') },
    { type: 'file', name: 'run', mode: 0o755, from: join(dir, 'content') },
  ] as const;
  const options = { reference: 'a/b:1', architecture: 'amd64', config: { User: '1:1' } };
  const digests = [
    await writeImage(join(dir, 'one'), entries, options),
    await writeImage(join(dir, 'two'), entries, options),
  ];
  assert.equal(digests[0], digests[1]);
  assert.deepEqual(await readFile(join(dir, 'one')), await readFile(join(dir, 'two')));
  const { manifests, config, layer, loadable } = await readImage(join(dir, 'one'), join(dir, 'image'));
  assert.equal(manifests[0].digest, digests[0]);
  assert.deepEqual(manifests[0].platform, { architecture: 'amd64', os: 'linux' });
  assert.deepEqual([config.architecture, config.os, config.config], ['amd64', 'linux', { User: '1:1' }]);
  assert.deepEqual(loadable.RepoTags, ['a/b:1']);
  await unpack(layer, join(dir, 'root'));
  assert.equal(await readFile(join(dir, 'root', long), 'utf8'), 'given');
  assert.equal(await readFile(join(dir, 'root/run'), 'utf8'), 'from a file');
  assert.equal((await stat(join(dir, 'root/run'))).mode & 0o777, 0o755);
  // No other file is left.
  assert.deepEqual((await readdir(dir)).toSorted(), ['content', 'image', 'one', 'root', 'two']);
});

test('a failed build leaves no file', async (t) => {
  const dir = await directory(t);
  const entries = [{ type: 'file', name: 'a', mode: 0o644, from: join(dir, 'missing') }] as const;
  const options = { reference: 'a/b:1', architecture: 'amd64', config: {} };
  await assert.rejects(writeImage(join(dir, 'image'), entries, options), /ENOENT/);
  assert.deepEqual(await readdir(dir), []);
});

const whyNot = process.getuid?.() === 0 ? false : 'only root may change the root directory of a process';

test('the program runs with nothing but the image', { skip: whyNot }, async (t) => {
  const dir = await directory(t);
  const archive = join(dir, 'image.tar');
  execFileSync(process.execPath, [join(ROOT, 'scripts/image.ts'), archive], { stdio: 'pipe' });
  const { config, layer, loadable } = await readImage(archive, join(dir, 'image'));
  assert.deepEqual(loadable.RepoTags, [`selfsame/selfsame:${VERSION}`]);
  const root = join(dir, 'root');
  await unpack(layer, root);
  const { Entrypoint: entrypoint, User: user } = config.config as { Entrypoint: string[]; User: string };
  const run = (command: readonly string[]) => {
    const { status, stdout, stderr } = spawnSync('chroot', [`--userspec=${user}`, root, ...command], {
      env: { PATH: '/usr/sbin:/usr/bin:/sbin:/bin' },
      encoding: 'utf8',
    });
    return { status, output: stdout + stderr };
  };
  const version = `selfsame ${VERSION} (node ${process.versions.node})\n`;
  assert.deepEqual(run([...entrypoint, 'version']), { status: 0, output: version });

  // Imports that only some commands need work as well.
  const script = [
    'transition/program',
    'plane/embedded/plane',
    'plane/cluster/controllers-program',
    'plane/node/node-program',
  ]
    .map((name) => `await import('/opt/selfsame/src/${name}.ts');`)
    .join('\n');
  const loaded = run([...entrypoint.slice(0, -1), '--input-type=module', '-e', script]);
  assert.deepEqual(loaded, { status: 0, output: '' });

  // The purpose of the image. There is no cluster here, so the command fails with that message.
  const job = run([...entrypoint, 'update-machine-types']);
  assert.equal(job.status, 1);
  assert.match(job.output, /^error: \S/);

  const names = execFileSync('tar', ['-tf', '-'], { input: layer, encoding: 'utf8', maxBuffer: 2 ** 26 }).split('\n');
  const strange = names.filter((name) =>
    /\.test\.ts$|\/testing\/|node_modules\/(?:typescript|oxlint|\.bin)/.test(name),
  );
  assert.deepEqual(strange, []);
});
