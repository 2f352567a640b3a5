/** The certificate of one node, taken from its directory: it does not read what belongs to other nodes. */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { VIRTUAL_MACHINE_INSTANCES } from '#api/virtual-machine-instance/kind.ts';
import { VIRTUAL_MACHINES } from '#api/virtual-machine/kind.ts';
import type { Client } from '#client/client.ts';
import { getIfExists } from '#client/get-if-exists.ts';
import { createHttpTransport } from '#client/http.ts';
import { loadKubeconfig } from '#client/kubeconfig.ts';
import { createClient } from '#client/rest-client.ts';
import { isApiError } from '#kube/api-error.ts';
import { PODS } from '#kube/core-kinds.ts';
import { systemClock } from '#lib/clock.ts';
import { poll } from '#node/hypervisor/qemu/process/timing.ts';
import { startSimulatedPlane } from '#test/support/simulated-plane.ts';
import type { Loose } from '#test/support/test-api.ts';
import { aVm } from '#test/support/vm-plane.ts';

const PATIENCE = { timeoutMs: 60_000, everyMs: 50 };
const readText = (path: string) => readFileSync(path, 'utf8');
const isForbidden = (error: unknown) => isApiError(error, 'Forbidden');

test('the certificate of a node reads only the instances and pods of this node', async (t) => {
  const plane = await startSimulatedPlane({ nodes: 2 });
  const closing: (() => void)[] = [];
  t.after(async () => {
    for (const close of closing) close();
    await plane.stop();
  });
  const connect = (path: string): Client => {
    const access = loadKubeconfig(readText(path), { directory: join(path, '..'), readFile: readText });
    const transport = createHttpTransport(access, { userAgent: 'test', clock: systemClock });
    closing.push(() => transport.close());
    return createClient(transport);
  };
  const admin = connect(plane.kubeconfigPath);
  const seed = { name: 'seed', cloudInitNoCloud: { userData: '#cloud-config\npassword: hunter2' } };
  const domain = { devices: { disks: [{ name: 'seed', disk: {} }] } };
  const vm = aVm('vault', { runStrategy: 'Always' }, { volumes: [seed], domain });
  await admin.create(VIRTUAL_MACHINES, { ...vm, metadata: { ...vm.metadata, namespace: 'default' } });
  const name = { namespace: 'default', name: 'vault' };
  const isPlaced = (vmi: Loose) => vmi.status?.nodeName !== undefined;
  const vmi: Loose = await poll(systemClock, PATIENCE, async () => {
    const found = await getIfExists(admin, VIRTUAL_MACHINE_INSTANCES, name);
    return found !== undefined && isPlaced(found) ? found : undefined;
  });
  const node: string = vmi.status.nodeName;
  const nodesDir = join(plane.dir, 'data', 'nodes');
  const other = readdirSync(nodesDir).find((one) => one !== node)!;
  const [own, stranger] = [node, other].map((one) => connect(join(nodesDir, one, 'kubeconfig'))) as [Client, Client];

  assert.match(JSON.stringify(await own.get(VIRTUAL_MACHINE_INSTANCES, name)), /hunter2/);
  await assert.rejects(stranger.get(VIRTUAL_MACHINE_INSTANCES, name), isForbidden);
  await assert.rejects(stranger.list(VIRTUAL_MACHINE_INSTANCES), isForbidden);
  await assert.rejects(stranger.list(PODS), isForbidden);
  // The error of a patch must not contain the values that it copies.
  const patch = { type: 'json', body: [{ op: 'copy', from: '/spec/volumes', path: '/metadata/name' }] } as const;
  await assert.rejects(
    stranger.patch(VIRTUAL_MACHINE_INSTANCES, name, patch, { subresource: 'status' }),
    (error) => isForbidden(error) && !String(error).includes('hunter2'),
  );
});
