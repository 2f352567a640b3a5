/** Snapshots, restores and simulated disks, for tests on the whole plane. */
import assert from 'node:assert/strict';
import type { Loose } from '#test/support/test-api.ts';
import type { SimulatedNode } from '#test/support/vm-plane-nodes.ts';
import type { VmPlane } from '#test/support/vm-plane.ts';

const VERSION = 'snapshot.kubevirt.io/v1beta1';
/** Kinds that users create, in an order in which they can be deleted, and kinds that controllers derive from them. */
const USER_KINDS = [
  'VirtualMachine',
  'VirtualMachineRestore',
  'VirtualMachineSnapshot',
  'VirtualMachineSnapshotContent',
  'PersistentVolumeClaim',
];
const DERIVED_KINDS = [
  'VirtualMachineInstance',
  'VirtualMachineIdentity',
  'VolumeSnapshot',
  'VolumeSnapshotContent',
  'PersistentVolume',
  'Pod',
];
const vmNamed = (name: string) => ({ apiGroup: 'kubevirt.io', kind: 'VirtualMachine', name });

export function aSnapshot(name: string, vm: string, spec: Loose = {}): Loose {
  const kind = 'VirtualMachineSnapshot';
  return { apiVersion: VERSION, kind, metadata: { name }, spec: { source: vmNamed(vm), ...spec } };
}

export function aRestore(name: string, vm: string, virtualMachineSnapshotName: string, spec: Loose = {}): Loose {
  const kind = 'VirtualMachineRestore';
  return {
    apiVersion: VERSION,
    kind,
    metadata: { name },
    spec: { target: vmNamed(vm), virtualMachineSnapshotName, ...spec },
  };
}

/** Returns the content of a snapshot, with its URL. */
export async function contentOf(plane: VmPlane, snapshot: string): Promise<Loose> {
  const { status } = await plane.get('VirtualMachineSnapshot', snapshot);
  const name = status.virtualMachineSnapshotContentName;
  const url = `/apis/${VERSION}/namespaces/default/virtualmachinesnapshotcontents/${name}`;
  return { ...(await plane.get('VirtualMachineSnapshotContent', name)), url };
}

/** Changes the spec of a content as an older version would have stored it. Only the snapshot controller can write it. */
export async function rewriteContent(plane: VmPlane, url: string, spec: Loose): Promise<void> {
  const name = 'system:serviceaccount:selfsame-system:snapshot-controller';
  const user = { name, groups: ['system:masters', 'system:authenticated'] };
  await plane.server.api.ok('PATCH', url, { body: { spec }, user });
}

/** Returns the text on a disk of the VM. */
export async function diskText(plane: VmPlane, vm: string, disk = 'root'): Promise<string> {
  const { node, volume } = await locateDisk(plane, vm, disk);
  return node.read(volume) ?? '';
}

export async function writeDisk(plane: VmPlane, vm: string, text: string): Promise<void> {
  await writeDisks(plane, vm, { root: text });
}

/** Writes all disks at the same time, as a guest could. */
export async function writeDisks(plane: VmPlane, vm: string, texts: Readonly<Record<string, string>>): Promise<void> {
  const names = Object.keys(texts);
  const places = await Promise.all(names.map((disk) => locateDisk(plane, vm, disk)));
  for (const [index, { node, volume }] of places.entries()) node.write(volume, texts[names[index]!]!);
}

/** Returns the texts of a snapshot by volume name; undefined for a volume whose copy is not complete. */
export async function snapshotTexts(plane: VmPlane, snapshot: string): Promise<Record<string, string | undefined>> {
  const { spec } = await contentOf(plane, snapshot);
  const texts: [string, string | undefined][] = [];
  for (const { volumeName, volumeSnapshotName } of spec.volumeBackups) {
    const { status } = await plane.get('VolumeSnapshot', volumeSnapshotName);
    const content = await plane.get('VolumeSnapshotContent', status.boundVolumeSnapshotContentName);
    const { snapshotHandle } = content.status;
    const copies = plane.nodes.map(({ disks }) => disks.snapshot(snapshotHandle));
    const copy = copies.find((candidate) => candidate !== undefined);
    texts.push([volumeName, copy?.isSealed === true ? copy.text : undefined]);
  }
  return Object.fromEntries(texts);
}

async function locateDisk(plane: VmPlane, vm: string, disk: string): Promise<{ node: SimulatedNode; volume: string }> {
  const { spec } = await plane.get('VirtualMachine', vm);
  const vmVolume = spec.template.spec.volumes.find(({ name }: Loose) => name === disk);
  const claim = await plane.get('PersistentVolumeClaim', vmVolume.persistentVolumeClaim.claimName);
  const { volumeName } = claim.spec;
  assert.ok(volumeName !== undefined, `the claim of ${vm} has no volume`);
  const volume = await plane.get('PersistentVolume', volumeName);
  const home = volume.metadata.annotations['selfsame.io/volume-node'] ?? plane.nodes[0]!.name;
  return { node: plane.node(home), volume: volumeName };
}

export async function deleteAll(plane: VmPlane, kinds: readonly string[]): Promise<void> {
  for (const kind of kinds) {
    for (const name of await plane.names(kind)) await plane.beginDelete(kind, name);
    await plane.settle();
  }
}

/** Deletes everything that users created and asserts that neither objects nor data remain. */
export async function deleteEverything(plane: VmPlane): Promise<void> {
  await deleteAll(plane, USER_KINDS);
  for (const kind of [...USER_KINDS, ...DERIVED_KINDS])
    assert.deepEqual(await plane.names(kind), [], `${kind} remains`);
  for (const { name, disks, volumeNames } of plane.nodes) {
    const snapshots = [...disks.own.snapshots.keys(), ...disks.shared.snapshots.keys()];
    assert.deepEqual([...volumeNames, ...snapshots], [], `data remains on ${name}`);
  }
}
