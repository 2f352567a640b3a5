/** A day without faults, with requests that are refused: `selfsame up` logs no warning and no error. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { VIRTUAL_MACHINES, type VirtualMachine } from '#api/virtual-machine/kind.ts';
import { VIRTUAL_MACHINE_INSTANCES } from '#api/virtual-machine-instance/kind.ts';
import { VIRTUAL_MACHINE_INSTANCE_MIGRATIONS } from '#api/virtual-machine-instance-migration/kind.ts';
import { getIfExists } from '#client/get-if-exists.ts';
import { createClient } from '#client/rest-client.ts';
import { NAMESPACES } from '#kube/core-kinds.ts';
import { parseYaml } from '#kube/yaml.ts';
import { createTemporaryDir, loadServerAccess, openTransport, startServer } from '#test/support/server-process.ts';

const ROOT = join(import.meta.dirname, '../..');
const POLL_MS = 100;
const TIMEOUT_MS = 180_000;
const HELLO = { namespace: 'default', name: 'hello' };

test('ordinary operations leave no warning in the log of the plane', { timeout: TIMEOUT_MS }, async (t) => {
  const dir = createTemporaryDir(t);
  const dataDir = join(dir, 'data');
  const server = await startServer(t, { dataDir, command: ['up', '--hypervisor', 'fake', '--nodes', '2'] });
  const client = createClient(openTransport(t, loadServerAccess(dataDir)));
  const env = { ...process.env, KUBECONFIG: join(dataDir, 'kubeconfig') };
  /** Starts a command that runs until it is interrupted. */
  const start = (...args: string[]) => {
    const child = execFile(join(ROOT, 'virtctl'), args, { env });
    t.after(() => child.kill());
    return child;
  };
  const virtctl = (...args: string[]) =>
    new Promise<{ code: number; stderr: string }>((resolve) => {
      const child = execFile(join(ROOT, 'virtctl'), args, { env }, (error, _stdout, stderr) =>
        resolve({ code: Number(error?.code ?? 0), stderr }),
      );
      child.stdin?.end();
    });
  const run = async (...args: string[]) => {
    const { code, stderr } = await virtctl(...args);
    assert.equal(code, 0, `virtctl ${args.join(' ')}: ${stderr}`);
  };
  /** Waits for the condition; the time limit of the test applies. */
  const waitUntil = async (holds: () => Promise<boolean>) => {
    while (!(await holds())) await new Promise<void>((resolve) => void setTimeout(resolve, POLL_MS));
  };
  /** Returns the uid of the running instance, or an empty string. */
  const runningUid = async () => {
    const { items } = await client.list(VIRTUAL_MACHINE_INSTANCES, { namespace: 'default' });
    return items.find(({ status }) => status?.phase === 'Running')?.metadata.uid ?? '';
  };

  const example = parseYaml(readFileSync(join(ROOT, 'examples/vm.yaml'), 'utf8')) as VirtualMachine;
  await client.create(VIRTUAL_MACHINES, { ...example, metadata: { ...example.metadata, namespace: 'default' } });
  await waitUntil(async () => (await runningUid()) !== '');
  const closed = await virtctl('port-forward', '--stdio', 'vm/hello', '22');
  assert.notEqual(closed.code, 0);
  assert.match(closed.stderr, /the guest refused the connection to port 22; start a service on that port in the guest/);
  assert.doesNotMatch(closed.stderr, /Internal error/);

  await run('migrate', 'hello');
  await waitUntil(async () => {
    const { items } = await client.list(VIRTUAL_MACHINE_INSTANCE_MIGRATIONS, { namespace: 'default' });
    return items.some(({ status }) => status?.phase === 'Succeeded');
  });
  const before = await runningUid();
  await run('restart', 'hello');
  await waitUntil(async () => !['', before].includes(await runningUid()));
  await run('pause', 'vm', 'hello');
  await run('unpause', 'vm', 'hello');

  writeFileSync(join(dir, 'disk.raw'), Buffer.alloc(1024 * 1024, '\x55\xaa', 'latin1'));
  await run('image-upload', 'pvc', 'disk', '--size=2Mi', `--image-path=${join(dir, 'disk.raw')}`);
  // A client that a user ends with Ctrl-C.
  const console = start('console', 'hello');
  await new Promise<void>((resolve) => void console.stderr?.once('data', () => resolve()));
  console.kill('SIGINT');

  await run('stop', 'hello');
  await waitUntil(async () => (await runningUid()) === '');
  await client.delete(VIRTUAL_MACHINES, HELLO);
  await waitUntil(async () => (await getIfExists(client, VIRTUAL_MACHINES, HELLO)) === undefined);

  // A namespace with a running VM, its copy and a disk that was plugged in; and requests that are refused.
  const namespace = 'shop';
  const inShop = (...args: string[]) => run('--namespace', namespace, ...args);
  await client.create(NAMESPACES, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } });
  const keeper = parseYaml(readFileSync(join(ROOT, 'examples/vm-tpm.yaml'), 'utf8')) as VirtualMachine;
  await client.create(VIRTUAL_MACHINES, { ...keeper, metadata: { name: 'keeper', namespace } });
  await waitUntil(async () => {
    const { status } = await client.get(VIRTUAL_MACHINES, { namespace, name: 'keeper' });
    return status?.ready === true;
  });
  await inShop('image-upload', 'pvc', 'extra', '--size=2Mi', `--image-path=${join(dir, 'disk.raw')}`);
  await inShop('addvolume', 'keeper', '--volume-name=extra', '--wait');
  await inShop('removevolume', 'keeper', '--volume-name=extra', '--wait');
  await inShop('snapshot', 'keeper', '--name=noon', '--wait');
  await inShop('restore', 'keeper', '--snapshot=noon', '--stop', '--wait');
  await inShop('start', 'keeper', '--wait');
  await inShop('clone', 'keeper', 'copy', '--wait');
  const viewer = start('--namespace', namespace, 'vnc', 'keeper', '--proxy-only');
  await new Promise<void>((resolve) => void viewer.stdout?.once('data', () => resolve()));
  for (const refused of [
    ['vnc', 'keeper', '--proxy-only', '--preserve-session'],
    ['image-upload', 'pvc', 'huge', '--size=900Pi', `--image-path=${join(dir, 'disk.raw')}`],
    ['image-upload', 'pvc', 'extra', `--image-path=${join(dir, 'disk.raw')}`],
    ['addvolume', 'keeper', '--volume-name=nosuch'],
    ['guestosinfo', 'keeper'],
    ['stop', 'nosuch'],
  ]) {
    const { code } = await virtctl('--namespace', namespace, ...refused);
    assert.notEqual(code, 0, refused.join(' '));
  }
  viewer.kill('SIGINT');
  await client.delete(NAMESPACES, { name: namespace });
  await waitUntil(async () => (await getIfExists(client, NAMESPACES, { name: namespace })) === undefined);

  const { code, stderr } = await server.kill('SIGINT');
  assert.equal(stderr, '', 'the log at the level warn is empty');
  assert.equal(code, 0);
});
