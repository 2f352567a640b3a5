/**
 * A Selfsame Job on a real plane with a simulated node: its program calls the API with its own service account. The
 * agent is killed meanwhile; the next agent ends the old program and starts it again, and the Job completes. A Job with
 * an impossible request fails at its second attempt.
 */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { TRANSITION_JOBS } from '#api/machine-types/kinds.ts';
import { SYSTEM_NAMESPACE } from '#api/names.ts';
import { VIRTUAL_MACHINES, type VirtualMachine } from '#api/virtual-machine/kind.ts';
import type { Client } from '#client/client.ts';
import { createHttpTransport } from '#client/http.ts';
import { loadKubeconfig } from '#client/kubeconfig.ts';
import { createClient } from '#client/rest-client.ts';
import { isTrue } from '#kube/conditions.ts';
import type { KubeObject, ResourceType, Stored } from '#kube/meta.ts';
import { systemClock } from '#lib/clock.ts';
import { poll } from '#node/hypervisor/qemu/process/timing.ts';
import { startSimulatedPlane } from '#test/support/simulated-plane.ts';
import { aVm } from '#test/support/vm-plane.ts';

const PATIENCE = { timeoutMs: 60_000, everyMs: 20 };
const JOB = 'convert-machine-type-test';
const IMPOSSIBLE = 'JOB_TARGET';

/** Waits until the object fulfils the condition. */
async function waitForObject<T extends KubeObject>(
  client: Client,
  type: ResourceType<T>,
  { namespace, name }: { namespace: string; name: string },
  isExpected: (object: Stored<T>) => boolean,
): Promise<void> {
  const signal = AbortSignal.timeout(PATIENCE.timeoutMs);
  const fieldSelector = `metadata.name=${name}`;
  for await (const { type: event, object } of client.watch(type, { namespace, fieldSelector, signal })) {
    if (event !== 'BOOKMARK' && isExpected(object)) return;
  }
  throw new Error(`${name} did not reach the expected state`);
}

async function makeJob(client: Client, name: string, env: readonly object[]) {
  const container = { name: 'main', image: 'selfsame/selfsame', args: ['update-machine-types'], env };
  const spec = { serviceAccountName: 'convert-machine-type', restartPolicy: 'OnFailure', containers: [container] };
  const metadata = { namespace: SYSTEM_NAMESPACE, name };
  const job = { backoffLimit: 100, template: { spec } };
  await client.create(TRANSITION_JOBS, { apiVersion: 'batch/v1', kind: 'Job', metadata, spec: job });
  return metadata;
}

interface Program {
  readonly pid: number;
  readonly parent: number;
}

/** Returns the processes that have a token of a pod of this plane, except those of the impossible Job. */
function programsOf(dir: string): Program[] {
  return readdirSync('/proc').flatMap((name) => {
    if (!/^[0-9]+$/.test(name)) return [];
    try {
      const environment = readFileSync(`/proc/${name}/environ`, 'latin1');
      if (!environment.includes(`SELFSAME_TOKEN_FILE=${dir}/`) || environment.includes(`${IMPOSSIBLE}=`)) return [];
      const parent = /^PPid:\s*([0-9]+)$/m.exec(readFileSync(`/proc/${name}/status`, 'latin1'))?.[1];
      return [{ pid: Number(name), parent: Number(parent) }];
    } catch {
      // Ended meanwhile.
      return [];
    }
  });
}

test('the program of a Job ends with its agent and restarts with the next one', async (t) => {
  const plane = await startSimulatedPlane({ nodes: 1 });
  const tokens = join(plane.dir, 'data/nodes/node-1/pods');
  t.after(async () => {
    await plane.stop();
    for (const { pid } of programsOf(tokens)) process.kill(pid, 'SIGKILL');
  });
  const readFile = (path: string) => readFileSync(path, 'utf8');
  const access = loadKubeconfig(readFile(plane.kubeconfigPath), { directory: dirname(plane.kubeconfigPath), readFile });
  const transport = createHttpTransport(access, { userAgent: 'test', clock: systemClock });
  t.after(() => transport.close());
  const client = createClient(transport);
  const vm = aVm('old', { runStrategy: 'Always' }, { domain: { machine: { type: 'pc-q35-6.2' }, firmware: {} } });
  const old = { namespace: 'default', name: 'old' };
  await client.create(VIRTUAL_MACHINES, { ...vm, metadata: { ...vm.metadata, ...old } } as VirtualMachine);
  await waitForObject(client, VIRTUAL_MACHINES, old, ({ status }) => status?.ready === true);

  const glob = { name: 'JOB_GLOB', value: '*q35-6.*' };
  const impossible = await makeJob(client, `${JOB}-impossible`, [glob, { name: IMPOSSIBLE, value: 'virt-9.9' }]);
  // More attempts do not help here: the next agent starts the Job once more, and then never again.
  await waitForObject(client, TRANSITION_JOBS, impossible, ({ spec }) => spec?.backoffLimit === 0);
  const job = await makeJob(client, JOB, [glob]);
  // The Job waits for a restart of the VM.
  await waitForObject(client, VIRTUAL_MACHINES, old, ({ status }) => status?.machineTypeRestartRequired === true);
  const [first, ...more] = programsOf(tokens);
  assert.ok(first !== undefined && more.length === 0);

  process.kill(first.parent, 'SIGKILL');
  const replaced = await poll(systemClock, PATIENCE, () => {
    const programs = programsOf(tokens);
    assert.ok(programs.length <= 1, 'never two programs at a time');
    return programs.find(({ pid }) => pid !== first.pid);
  });
  assert.ok(replaced);

  await client.delete(VIRTUAL_MACHINES, old);
  await waitForObject(client, TRANSITION_JOBS, job, ({ status }) => status?.succeeded === 1);
  await waitForObject(client, TRANSITION_JOBS, impossible, ({ status }) => isTrue(status?.conditions, 'Failed'));
  const isEmpty = () => (readdirSync(tokens).length === 0 ? true : undefined);
  assert.ok(await poll(systemClock, PATIENCE, isEmpty));
  assert.deepEqual(programsOf(tokens), []);
});
