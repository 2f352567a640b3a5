/**
 * Delete protection, for tests on the whole plane: a protected VM with a disk, and everything that the VM depends on.
 */
import assert from 'node:assert/strict';
import type { TestResponse, CallOptions, Loose } from '#test/support/test-api.ts';
import { aClaim, aVmOnClaim, type VmPlane } from '#test/support/vm-plane.ts';

export const LABEL = 'kubevirt.io/vm-delete-protection';
export const MARK = 'selfsame.io/protected-vms';
export const CRD = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions/virtualmachines.kubevirt.io';
export const RECORD_CRD =
  '/apis/apiextensions.k8s.io/v1/customresourcedefinitions/virtualmachineidentities.identity.selfsame.io';
export const PRECIOUS = 'precious';

/** Returns the message with which KubeVirt refuses the deletion, word for word. Ours continues after it. */
export const refusalMessage = (vm: string) =>
  `VirtualMachine ${vm} cannot be deleted, disable/remove label '${LABEL}' from VirtualMachine before deleting it`;

export const labelPatch = (value: string | null): Loose => ({ metadata: { labels: { [LABEL]: value } } });

export const jsonPatch = (...operations: Loose[]): CallOptions => ({
  body: operations,
  contentType: 'application/json-patch+json',
});

/** Returns the URLs of the objects in a namespace. */
export function urlsOf(namespace: string) {
  const core = `/api/v1/namespaces/${namespace}`;
  const kubevirt = `/apis/kubevirt.io/v1/namespaces/${namespace}`;
  return {
    namespace: core,
    claims: `${core}/persistentvolumeclaims`,
    pods: `${core}/pods`,
    configMaps: `${core}/configmaps`,
    vms: `${kubevirt}/virtualmachines`,
    vmis: `${kubevirt}/virtualmachineinstances`,
    records: `/apis/identity.selfsame.io/v1/namespaces/${namespace}/virtualmachineidentities`,
    snapshots: `/apis/snapshot.kubevirt.io/v1beta1/namespaces/${namespace}/virtualmachinesnapshots`,
    restores: `/apis/snapshot.kubevirt.io/v1beta1/namespaces/${namespace}/virtualmachinerestores`,
  };
}

export async function createNamespace(plane: VmPlane, name: string): Promise<void> {
  const body = { apiVersion: 'v1', kind: 'Namespace', metadata: { name } };
  await plane.server.api.ok('POST', '/api/v1/namespaces', { body });
  await plane.settle();
}

/** Creates a protected VM that runs, with a claim of the same name that contains data. */
export async function createProtectedVm(
  plane: VmPlane,
  namespace: string,
  name: string,
  { metadata = {}, claimMetadata = {} }: { readonly metadata?: Loose; readonly claimMetadata?: Loose } = {},
): Promise<Loose> {
  const { api } = plane.server;
  const { claims, vms } = urlsOf(namespace);
  const claim = aClaim(name);
  const vm = aVmOnClaim(name, name, { runStrategy: 'Always' });
  await api.ok('POST', claims, { body: { ...claim, metadata: { name, ...claimMetadata } } });
  const body = { ...vm, metadata: { name, labels: { [LABEL]: 'true' }, ...metadata } };
  const created = await api.ok('POST', vms, { body });
  await plane.settle();
  const { node, volume } = await locateDisk(plane, namespace, name);
  node.write(volume, PRECIOUS);
  return created;
}

export async function locateDisk(plane: VmPlane, namespace: string, vm: string) {
  const { api } = plane.server;
  const { claims, vms } = urlsOf(namespace);
  const { spec } = await api.ok('GET', `${vms}/${vm}`);
  const { claimName } = spec.template.spec.volumes[0].persistentVolumeClaim;
  const claim = await api.ok('GET', `${claims}/${claimName}`);
  const volume: string = claim.spec.volumeName;
  assert.ok(volume !== undefined, `the claim of ${vm} has no volume`);
  const { metadata } = await api.ok('GET', `/api/v1/persistentvolumes/${volume}`);
  const home = metadata.annotations['selfsame.io/volume-node'] ?? plane.nodes[0]!.name;
  return { node: plane.node(home), claim: claimName as string, volume };
}

/**
 * Returns everything that deletion could take from the VM: the VM, the data on its disk, its record, and which of its
 * objects are being deleted.
 */
export async function protectedStateOf(plane: VmPlane, namespace: string, vm: string): Promise<Loose> {
  const { api } = plane.server;
  const places = urlsOf(namespace);
  const response = await plane.call('GET', `${places.vms}/${vm}`);
  if (response.status === 404) return { vm: 'gone' };
  const { node, claim, volume } = await locateDisk(plane, namespace, vm);
  const needed = [
    places.namespace,
    `${places.claims}/${claim}`,
    `/api/v1/persistentvolumes/${volume}`,
    CRD,
    RECORD_CRD,
  ];
  const deleting: string[] = [];
  for (const url of needed) {
    const { metadata } = await api.ok('GET', url);
    if (metadata.deletionTimestamp !== undefined) deleting.push(url);
  }
  const record = (await plane.call('GET', `${places.records}/${vm}`)).body;
  const { metadata, spec } = response.body;
  if (metadata.deletionTimestamp !== undefined) deleting.push('the VM');
  return {
    uid: metadata.uid,
    label: metadata.labels?.[LABEL],
    firmware: spec.template.spec.domain.firmware,
    volumes: spec.template.spec.volumes.length,
    disk: node.read(volume),
    record: record.metadata?.uid,
    addresses: record.status?.devices.map(({ id, address }: Loose) => `${id} ${JSON.stringify(address)}`).toSorted(),
    leaving: deleting,
  };
}

export async function readMark(plane: VmPlane, url: string): Promise<string | undefined> {
  return (await plane.server.api.ok('GET', url)).metadata.annotations?.[MARK];
}

/** Returns `200`, or the code and message: `422 VirtualMachine db cannot ...`. */
export function renderResponse({ status, body }: TestResponse): string {
  return status < 300 ? String(status) : `${status} ${body.message}`;
}
