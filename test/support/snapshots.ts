/** Snapshots, restores and simulated disks, for tests on the whole plane. */
import assert from 'node:assert/strict';
import type { Loose } from '#test/support/test-api.ts';
import type { SimulatedNode } from '#test/support/vm-plane-nodes.ts';
import type { VmPlane } from '#test/support/vm-plane.ts';

const VERSION = 'snapshot.kubevirt.io/v1beta1';
/** What people make, in an order in which it can be deleted; and what follows from it. */
const MADE = [
  'VirtualMachine',
  'VirtualMachineRestore',
  'VirtualMachineSnapshot',
  'VirtualMachineSnapshotContent',
  'PersistentVolumeClaim',
];
const FOLLOWING = [
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

/** The content of a snapshot, and where it is. */
export async function contentOf(plane: VmPlane, snapshot: string): Promise<Loose> {
  const { status } = await plane.get('VirtualMachineSnapshot', snapshot);
  const name = status.virtualMachineSnapshotContentName;
  const url = `/apis/${VERSION}/namespaces/default/virtualmachinesnapshotcontents/${name}`;
  return { ...(await plane.get('VirtualMachineSnapshotContent', name)), url };
}

/** What is on a disk of the VM. */
export async function diskOf(plane: VmPlane, vm: string, disk = 'root'): Promise<string> {
  const { node, volume } = await placeOf(plane, vm, disk);
  return node.read(volume) ?? '';
}

export async function writeDisk(plane: VmPlane, vm: string, text: string): Promise<void> {
  await writeDisks(plane, vm, { root: text });
}

/** All of them at one moment, as a guest would. */
export async function writeDisks(plane: VmPlane, vm: string, texts: Readonly<Record<string, string>>): Promise<void> {
  const names = Object.keys(texts);
  const places = await Promise.all(names.map((disk) => placeOf(plane, vm, disk)));
  for (const [index, { node, volume }] of places.entries()) node.write(volume, texts[names[index]!]!);
}

/** What a snapshot holds, by the name of the volume; undefined for one whose copy is not complete. */
export async function heldBy(plane: VmPlane, snapshot: string): Promise<Record<string, string | undefined>> {
  const { spec } = await contentOf(plane, snapshot);
  const held: [string, string | undefined][] = [];
  for (const { volumeName, volumeSnapshotName } of spec.volumeBackups) {
    const { status } = await plane.get('VolumeSnapshot', volumeSnapshotName);
    const content = await plane.get('VolumeSnapshotContent', status.boundVolumeSnapshotContentName);
    const { snapshotHandle } = content.status;
    const copies = plane.nodes.map(({ disks }) => disks.snapshot(snapshotHandle));
    const copy = copies.find((one) => one !== undefined);
    held.push([volumeName, copy?.isSealed === true ? copy.text : undefined]);
  }
  return Object.fromEntries(held);
}

async function placeOf(plane: VmPlane, vm: string, disk: string): Promise<{ node: SimulatedNode; volume: string }> {
  const { spec } = await plane.get('VirtualMachine', vm);
  const found = spec.template.spec.volumes.find(({ name }: Loose) => name === disk);
  const claim = await plane.get('PersistentVolumeClaim', found.persistentVolumeClaim.claimName);
  const { volumeName } = claim.spec;
  assert.ok(volumeName !== undefined, `the claim of ${vm} has no volume`);
  const volume = await plane.get('PersistentVolume', volumeName);
  const home = volume.metadata.annotations['selfsame.io/volume-node'] ?? plane.nodes[0]!.name;
  return { node: plane.node(home), volume: volumeName };
}

export async function removeAll(plane: VmPlane, kinds: readonly string[]): Promise<void> {
  for (const kind of kinds) {
    for (const name of await plane.names(kind)) await plane.drop(kind, name);
    await plane.settle();
  }
}

/** Deletes what people make; then nothing is left, neither objects nor data. */
export async function removeEverything(plane: VmPlane): Promise<void> {
  await removeAll(plane, MADE);
  for (const kind of [...MADE, ...FOLLOWING]) assert.deepEqual(await plane.names(kind), [], `${kind} is left`);
  for (const { name, disks, data } of plane.nodes) {
    const snapshots = [...disks.own.snapshots.keys(), ...disks.shared.snapshots.keys()];
    assert.deepEqual([...data, ...snapshots], [], `data is left on ${name}`);
  }
}
