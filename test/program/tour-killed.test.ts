/**
 * A killed tour leaves nothing behind: its plane ends with it, and removes guests and data. If the plane was killed as
 * well, `selfsame doctor` reports it, and `selfsame tour --clear` removes everything. Guests are simulated; a process in
 * the directory of a node represents a QEMU process.
 */
import assert from 'node:assert/strict';
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { hostname, tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';
import { test, type TestContext } from 'node:test';
import { createClient } from '#client/rest-client.ts';
import { NAMESPACES } from '#kube/core-kinds.ts';
import { isAlive } from '#lib/files/owned-dir.ts';
import { loadServerAccess, openTransport } from '#test/support/server-process.ts';

const ROOT = join(import.meta.dirname, '../..');
const SELFSAME = join(ROOT, 'selfsame');
const PARENT = join(ROOT, 'test/support/tour-parent.ts');
const TIMEOUT_MS = 120_000;
const POLL_MS = 50;

interface Scene {
  /** The temporary directory of this tour only. */
  readonly temporary: string;
  /** The data directory of the plane. */
  readonly dir: string;
  readonly parent: ChildProcess;
  readonly guest: ChildProcess;
  readonly environment: NodeJS.ProcessEnv;
  /** The plane and the agents of its nodes. */
  readonly processes: readonly [number, ...number[]];
}

async function aTour(t: TestContext): Promise<Scene> {
  const temporary = mkdtempSync(join(tmpdir(), 'tour-'));
  // The tour must not find another plane: there is none in this directory.
  const place = { TMPDIR: temporary, SELFSAME_DATA_DIR: join(temporary, 'no-plane-here') };
  const environment = { ...process.env, ...place, SELFSAME_HYPERVISOR: 'fake' };
  const parent = spawn(process.execPath, [...process.execArgv, PARENT], {
    env: environment,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  t.after(async () => {
    parent.kill('SIGKILL');
    await runSelfsame(['tour', '--clear'], environment);
    rmSync(temporary, { recursive: true, force: true });
  });
  const [kubeconfig] = (await once(createInterface({ input: parent.stdout }), 'line')) as [string];
  const dir = dirname(kubeconfig);
  const pidIn = (path: string) => Number(readFileSync(join(dir, path, 'server.pid'), 'utf8'));
  const processes = [pidIn('.'), pidIn('nodes/node-1'), pidIn('nodes/node-2')] as const;
  const guest = spawn('sleep', ['600'], { cwd: join(dir, 'nodes/node-1'), stdio: 'ignore' });
  t.after(() => guest.kill('SIGKILL'));
  await once(guest, 'spawn');
  return { temporary, dir, parent, guest, environment, processes };
}

async function runSelfsame(args: readonly string[], env: NodeJS.ProcessEnv): Promise<{ code: number; output: string }> {
  const child = spawn(SELFSAME, args, { env, stdio: ['ignore', 'pipe', 'inherit'] });
  const [output, [code]] = await Promise.all([text(child.stdout), once(child, 'close') as Promise<[number]>]);
  return { code, output };
}

/** Waits for the condition; the time limit of the test applies. */
async function waitUntil(holds: () => boolean): Promise<void> {
  while (!holds()) await new Promise<void>((resolve) => void setTimeout(resolve, POLL_MS));
}

test('the plane of a killed tour ends, and removes its guests and its data', { timeout: TIMEOUT_MS }, async (t) => {
  const { temporary, parent, guest, processes } = await aTour(t);
  const guestEnded = once(guest, 'close');
  parent.kill('SIGKILL');
  await guestEnded;
  await waitUntil(() => readdirSync(temporary).length === 0);
  await waitUntil(() => !processes.some(isAlive));
});

test(
  'if the plane was killed too, doctor names the command that removes the rest',
  { timeout: TIMEOUT_MS },
  async (t) => {
    const { dir, parent, guest, processes, environment } = await aTour(t);
    const [plane, ...agents] = processes;
    // Stopped first, so that the plane cannot notice the end of the tour.
    process.kill(plane, 'SIGSTOP');
    const parentEnded = once(parent, 'close');
    parent.kill('SIGKILL');
    await parentEnded;
    process.kill(plane, 'SIGKILL');
    await waitUntil(() => !isAlive(plane));
    assert.ok(agents.every(isAlive));

    const { output } = await runSelfsame(['doctor', '--output', 'json'], environment);
    const { findings } = JSON.parse(output) as { findings: { what: string; says: string; mend?: string }[] };
    const finding = findings.find(({ what }) => what === 'selfsame tour');
    assert.ok(finding?.says.includes(dir), output);
    assert.equal(finding?.mend, 'selfsame tour --clear');

    const guestEnded = once(guest, 'close');
    assert.deepEqual(await runSelfsame(['tour', '--clear'], environment), {
      code: 0,
      output: `removed ${dir}, and stopped its processes\n`,
    });
    await guestEnded;
    assert.ok(!existsSync(dir));
    await waitUntil(() => !agents.some(isAlive));
    assert.deepEqual(await runSelfsame(['tour', '--clear'], environment), {
      code: 0,
      output: 'no killed tour left anything behind\n',
    });
  },
);

test('on a running plane, the namespaces of killed tours are removed', { timeout: TIMEOUT_MS }, async (t) => {
  const { dir, guest, environment } = await aTour(t);
  guest.kill('SIGKILL');
  await once(guest, 'close');
  const client = createClient(openTransport(t, loadServerAccess(dir)));
  const tourProcesses = {
    'selfsame-tour-dead1': guest.pid,
    'selfsame-tour-lives': process.pid,
    'other-namespace': guest.pid,
  };
  for (const [name, pid] of Object.entries(tourProcesses)) {
    const annotations = { 'selfsame.io/tour-process': `${hostname()}/${pid}` };
    await client.create(NAMESPACES, { apiVersion: 'v1', kind: 'Namespace', metadata: { name, annotations } });
  }
  const { code, output } = await runSelfsame(['tour', '--clear', '--kubeconfig', join(dir, 'kubeconfig')], environment);
  assert.equal(output, 'removed namespace selfsame-tour-dead1 and its VM\n');
  assert.equal(code, 0);
  const { items } = await client.list(NAMESPACES, {});
  const kept = items.map(({ metadata }) => metadata.name).filter((name) => Object.hasOwn(tourProcesses, name));
  assert.deepEqual(kept.toSorted(), ['other-namespace', 'selfsame-tour-lives']);
});

test('the plane of a tour refuses a data directory that is not its own', async (t) => {
  const dir = mkdtempSync(join(tmpdir(), 'kept-'));
  t.after(() => rmSync(dir, { recursive: true, force: true }));
  const { code } = await runSelfsame(['tour-plane', '--data-dir', dir], process.env);
  assert.equal(code, 1);
  assert.ok(existsSync(dir));
});
