/**
 * Our components on an existing API server: each is a separate process that uses HTTPS and has only its own rights. With
 * SELFSAME_CLUSTER_KUBECONFIG the test runs on an existing cluster.
 */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { PROTECTION_LABEL } from '#api/protection/delete-protection.ts';
import { VIRTUAL_MACHINE_INSTANCE_MIGRATIONS } from '#api/virtual-machine-instance-migration/kind.ts';
import { VIRTUAL_MACHINE_INSTANCES, type VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import { VIRTUAL_MACHINES, type VirtualMachine } from '#api/virtual-machine/kind.ts';
import type { Informer } from '#client/informer.ts';
import { isApiError } from '#kube/api-error.ts';
import { isTrue } from '#kube/conditions.ts';
import { NAMESPACES, PODS } from '#kube/core-kinds.ts';
import type { ResourceType } from '#kube/meta.ts';
import {
  bindPodsWithoutScheduler,
  REAL_CLUSTER,
  runProgram,
  startCluster,
  type Cluster,
  type ChildProcess,
} from '#test/support/cluster-processes.ts';
import { aVirtualMachine, optionsWithoutAbort } from '#test/support/cluster-vms.ts';

const NAMESPACE = `any-cluster-${process.pid}`;
const SECRETS: ResourceType = { group: '', version: 'v1', kind: 'Secret', plural: 'secrets', namespaced: true };

const ENDPOINT_SLICES: ResourceType = {
  ...SECRETS,
  group: 'discovery.k8s.io',
  kind: 'EndpointSlice',
  plural: 'endpointslices',
};
const SUBRESOURCES: ResourceType = { ...VIRTUAL_MACHINE_INSTANCES, group: 'subresources.kubevirt.io' };

const ends: (() => unknown)[] = [];
const scope = { after: (end: () => unknown) => void ends.push(end) };
let cluster: Cluster;
let vms: Informer<VirtualMachine>;
let vmis: Informer<VirtualMachineInstance>;
const controllers: ChildProcess[] = [];

before(async () => {
  cluster = await startCluster(scope);
  await cluster.admin.create(NAMESPACES, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: NAMESPACE } });
  const first = await cluster.startControllers();
  await first.awaitLine('leading');
  controllers.push(first);
  await Promise.all(['vm-host-1', 'vm-host-2'].map((name) => cluster.startNode(name)));
  vms = await cluster.startInformer(VIRTUAL_MACHINES, NAMESPACE);
  vmis = await cluster.startInformer(VIRTUAL_MACHINE_INSTANCES, NAMESPACE);
  await bindPodsWithoutScheduler(cluster, NAMESPACE, ['vm-host-1', 'vm-host-2']);
});
after(async () => {
  await cluster?.admin.deleteCollection(VIRTUAL_MACHINES, { namespace: NAMESPACE }).catch(() => undefined);
  await vms?.waitUntil(() => vms.list().length === 0, optionsWithoutAbort());
  await cluster?.admin.delete(NAMESPACES, { name: NAMESPACE }).catch(() => undefined);
  for (const end of ends.toReversed()) await end();
});

const key = (name: string) => `${NAMESPACE}/${name}`;
const phaseIs = (name: string, phase: string) =>
  vmis.waitUntil(() => vmis.get(key(name))?.status?.phase === phase, optionsWithoutAbort());
const create = (name: string) => cluster.admin.create(VIRTUAL_MACHINES, aVirtualMachine(NAMESPACE, name));
const put = (name: string, verb: string) =>
  cluster.admin.update(
    SUBRESOURCES,
    { apiVersion: 'subresources.kubevirt.io/v1', kind: 'x', metadata: { name, namespace: NAMESPACE } },
    { subresource: verb },
  );
const isPaused = (name: string) => isTrue(vmis.get(key(name))?.status?.conditions, 'Paused');

test('a VM can be started, paused, migrated, protected and stopped', { timeout: 120_000 }, async () => {
  const made = await create('life');
  assert.match(
    String(made.spec.template.spec?.domain.firmware?.uuid),
    /^[0-9a-f-]{36}$/,
    'the webhook has set the UUID',
  );
  await phaseIs('life', 'Running');
  // Our client reports an empty answer as an error; only the effect of the request counts.
  await put('life', 'pause').catch((error: unknown) => assert.match(String(error), /is not an object/));
  await vmis.waitUntil(() => isPaused('life'), optionsWithoutAbort());
  await put('life', 'unpause').catch((error: unknown) => assert.match(String(error), /is not an object/));
  await vmis.waitUntil(() => !isPaused('life'), optionsWithoutAbort());

  const from = vmis.get(key('life'))?.status?.nodeName;
  await cluster.admin.create(VIRTUAL_MACHINE_INSTANCE_MIGRATIONS, {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachineInstanceMigration',
    metadata: { name: 'life', namespace: NAMESPACE },
    spec: { vmiName: 'life' },
  });
  const moved = await cluster.startInformer(VIRTUAL_MACHINE_INSTANCE_MIGRATIONS, NAMESPACE);
  await moved.waitUntil(
    () => ['Succeeded', 'Failed'].includes(moved.get(key('life'))?.status?.phase ?? ''),
    optionsWithoutAbort(),
  );
  assert.equal(moved.get(key('life'))?.status?.phase, 'Succeeded');
  await vmis.waitUntil(() => vmis.get(key('life'))?.status?.nodeName !== from, optionsWithoutAbort());

  const label = (value: string | null) => ({
    type: 'merge' as const,
    body: { metadata: { labels: { [PROTECTION_LABEL]: value } } },
  });
  const name = { namespace: NAMESPACE, name: 'life' };
  await cluster.admin.patch(VIRTUAL_MACHINES, name, label('True'));
  await assert.rejects(cluster.admin.delete(VIRTUAL_MACHINES, name), /cannot be deleted, disable\/remove label/);
  await cluster.admin.patch(VIRTUAL_MACHINES, name, label(null));
  await cluster.admin.patch(VIRTUAL_MACHINES, name, { type: 'merge', body: { spec: { runStrategy: 'Halted' } } });
  await vmis.waitUntil(() => vmis.get(key('life')) === undefined, optionsWithoutAbort());
});

test('each process has only its own rights', async () => {
  const node = cluster.clientOf(await cluster.join('node', 'vm-host-1'));
  const own = cluster.clientOf(await cluster.join('controllers'));
  const isForbidden = (error: unknown) => isApiError(error, 'Forbidden');
  for (const [who, client] of [
    ['a node', node],
    ['the account of a controllers process', own],
  ] as const) {
    await assert.rejects(client.create(VIRTUAL_MACHINES, aVirtualMachine(NAMESPACE, 'no')), isForbidden, who);
  }
  await assert.rejects(own.list(VIRTUAL_MACHINES, { namespace: NAMESPACE }), isForbidden);
  await assert.rejects(own.list(SECRETS, { namespace: 'selfsame-system' }), isForbidden);
  // The embedded engine has no node authorizer: its nodes can read what any pod could need (docs/any-cluster.md).
  if (REAL_CLUSTER === undefined) return;
  await assert.rejects(node.get(SECRETS, { namespace: 'selfsame-system', name: 'selfsame-ca' }), isForbidden);
});

test('a second install changes nothing while everything runs', async () => {
  assert.match(
    await runProgram(scope, ['install', '--apply', '--kubeconfig', cluster.kubeconfig]),
    /\nnothing changed\n$/,
  );
});

test(
  'when the leader is killed while VMs start, the other process continues, and nothing is created twice',
  { timeout: 180_000 },
  async () => {
    const second = await cluster.startControllers();
    const pods = await cluster.startInformer(PODS, NAMESPACE);
    const names = Array.from({ length: 12 }, (_, index) => `many-${index}`);
    const seen = new Map<string, Set<string>>();
    pods.onChange((podKey) => {
      const pod = pods.get(podKey);
      const vm = pod?.metadata.annotations?.['kubevirt.io/domain'];
      if (pod !== undefined && vm !== undefined) seen.set(vm, (seen.get(vm) ?? new Set()).add(pod.metadata.uid));
    });
    for (const name of names.slice(0, 6)) await create(name);
    await controllers[0]?.kill('SIGKILL');
    // The engine tries another endpoint if one does not answer; kube-apiserver may fail for a moment.
    if (REAL_CLUSTER !== undefined) await waitForSingleEndpoint();
    for (const name of names.slice(6)) await create(name);
    await second.awaitLine('leading');
    for (const name of names) await phaseIs(name, 'Running');
    for (const name of names) assert.equal(seen.get(name)?.size, 1, `${name} has had one pod`);
    assert.equal(vmis.list().length, names.length);
  },
);

/** Waits until the endpoint of the killed process is removed; requests that fail until then say why (docs/any-cluster.md). */
async function waitForSingleEndpoint(): Promise<void> {
  const slices = await cluster.startInformer(ENDPOINT_SLICES, 'selfsame-system');
  const ours = () => slices.list().filter(({ metadata }) => metadata.name.startsWith('selfsame-webhook-'));
  const dryRun = { dryRun: true };
  while (ours().length > 1) {
    await cluster.admin.create(VIRTUAL_MACHINES, aVirtualMachine(NAMESPACE, 'meanwhile'), dryRun).catch((error) => {
      assert.ok(isApiError(error, 'InternalError'), String(error));
      assert.match(
        String(error),
        /failed calling webhook "mutate-virtualmachines\.selfsame\.io": .*connection refused/,
      );
    });
  }
  assert.equal(ours().length, 1);
}
