/** Certificates that expire while everything runs: CAs and the certificates that they sign are renewed without a failed request. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { VIRTUAL_MACHINE_INSTANCES, type VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import { VIRTUAL_MACHINES } from '#api/virtual-machine/kind.ts';
import type { Informer } from '#client/informer.ts';
import { isTrue } from '#kube/conditions.ts';
import { NAMESPACES } from '#kube/core-kinds.ts';
import type { KubeObject, ResourceType, Stored } from '#kube/meta.ts';
import { bindPodsWithoutScheduler, startCluster, type Cluster } from '#test/support/cluster-processes.ts';
import { aVirtualMachine, optionsWithoutAbort } from '#test/support/cluster-vms.ts';

const NAMESPACE = `certificates-${process.pid}`;

interface Secret extends KubeObject {
  data?: Record<string, string>;
}
const SECRETS: ResourceType<Secret> = { group: '', version: 'v1', kind: 'Secret', plural: 'secrets', namespaced: true };
const AUTHORITIES = 'selfsame-system/selfsame-ca';

const ends: (() => unknown)[] = [];
const scope = { after: (end: () => unknown) => void ends.push(end) };
let cluster: Cluster;
let vmis: Informer<VirtualMachineInstance>;

before(async () => {
  cluster = await startCluster(scope);
  await cluster.admin.create(NAMESPACES, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: NAMESPACE } });
  // An earlier CA of the cluster would be valid for much longer.
  await cluster.admin.delete(SECRETS, { namespace: 'selfsame-system', name: 'selfsame-ca' }).catch(() => undefined);
  const controllers = await cluster.startControllers(['--certificate-lifetime', '5s', '--ca-lifetime', '20s']);
  await controllers.awaitLine('leading');
  await cluster.startNode('vm-host-3');
  vmis = await cluster.startInformer(VIRTUAL_MACHINE_INSTANCES, NAMESPACE);
  await bindPodsWithoutScheduler(cluster, NAMESPACE, ['vm-host-3']);
});
after(async () => {
  await cluster?.admin.deleteCollection(VIRTUAL_MACHINES, { namespace: NAMESPACE }).catch(() => undefined);
  await vmis?.waitUntil(() => vmis.list().length === 0, optionsWithoutAbort());
  await cluster?.admin.delete(NAMESPACES, { name: NAMESPACE }).catch(() => undefined);
  for (const end of ends.toReversed()) await end();
});

const authoritiesIn = (secret: Stored<Secret> | undefined) =>
  Object.keys(secret?.data ?? {}).filter((name) => name.endsWith('.crt'));

test(
  'requests to webhook, aggregated API and agents succeed while the CA changes twice',
  { timeout: 180_000 },
  async () => {
    const secrets = await cluster.startInformer(SECRETS, 'selfsame-system');
    await cluster.admin.create(VIRTUAL_MACHINES, aVirtualMachine(NAMESPACE, 'steady'));
    const key = `${NAMESPACE}/steady`;
    await vmis.waitUntil(() => vmis.get(key)?.status?.phase === 'Running', optionsWithoutAbort());

    const seen = new Set<string>();
    const type = { ...VIRTUAL_MACHINE_INSTANCES, group: 'subresources.kubevirt.io' } as ResourceType;
    const metadata = { name: 'steady', namespace: NAMESPACE };
    const request = async (verb: 'pause' | 'unpause') => {
      const sent = { apiVersion: 'subresources.kubevirt.io/v1', kind: 'x', metadata };
      // Our client reports an empty answer as an error; every other error counts.
      await cluster.admin.update(type, sent, { subresource: verb }).catch((error: unknown) => {
        assert.match(String(error), /is not an object/);
      });
      const wanted = verb === 'pause';
      await vmis.waitUntil(() => isTrue(vmis.get(key)?.status?.conditions, 'Paused') === wanted, optionsWithoutAbort());
    };
    const newest = authoritiesIn(secrets.get(AUTHORITIES)).toSorted().at(-1) ?? assert.fail('there is none');
    let requests = 0;
    // Until the CA that is now the newest has signed certificates and has expired.
    for (let isOver = false; !isOver; requests++) {
      await cluster.admin.create(VIRTUAL_MACHINES, aVirtualMachine(NAMESPACE, `round-${requests}`), { dryRun: true });
      await request('pause');
      await request('unpause');
      const now = authoritiesIn(secrets.get(AUTHORITIES));
      for (const name of now) seen.add(name);
      isOver = !now.includes(newest) && seen.size >= 3;
    }
    assert.ok(requests > 5, `${requests} rounds`);
  },
);
