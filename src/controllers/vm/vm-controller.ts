/**
 * The controller of VirtualMachines. It observes a VM, its instance, its identity record, the claims of its template,
 * claims of other owners that are marked as its state, the definitions of its networks, unfinished snapshots and restores
 * (lock.ts) and VMs with the same firmware uuid, and decides (decide-vm.ts). It creates and deletes the instance; controllers/vmi and the node
 * agent run it. After the end of a VM it releases the instance and the record.
 */
import { configurationOf } from '#api/kubevirt/configuration.ts';
import { firmwareUuidOf } from '#api/identity/firmware-uuid-index.ts';
import { DEFAULT_NETWORK, GUEST_NETWORKS } from '#api/network/guest-network.ts';
import { NETWORK_ADDRESSES } from '#api/network/network-address.ts';
import { ownedAddressesOf } from '#api/network/owned-addresses.ts';
import { ADDRESSES_BY_OWNER, ownerKeyOf } from '#controllers/shared/network/instance-addresses.ts';
import { macAddressesOf } from '#api/identity/mac-address-index.ts';
import { KUBEVIRTS } from '#api/kubevirt/kind.ts';
import { LEGACY_UUID_METRIC } from '#api/identity/legacy-uuid.ts';
import { isRestartMarked, restartMarkOf } from '#api/machine-types/restart-mark.ts';
import { KUBEVIRT_NAME, SYSTEM_NAMESPACE } from '#api/names.ts';
import { uuidAdmissionSince, VM_DEFINITION } from '#api/identity/uuid-admission.ts';
import { isProtected } from '#api/protection/delete-protection.ts';
import { NETWORK_ATTACHMENT_DEFINITIONS } from '#api/network/network-attachment-definition.ts';
import { claimNamesOf } from '#api/storage/claim-names.ts';
import { findStateBlocker } from '#api/storage/claim-vms.ts';
import {
  findStateClaim,
  needsState,
  reportedStateClaim,
  stateOwnerOf,
  type StateOwner,
} from '#api/storage/persistent-state.ts';
import { findStateConflicts } from '#api/storage/state-conflict.ts';
import { VIRTUAL_MACHINES, type VirtualMachine, templateSpec } from '#api/virtual-machine/kind.ts';
import { VIRTUAL_MACHINE_IDENTITIES, type VirtualMachineIdentity } from '#api/virtual-machine-identity/kind.ts';
import { isRecordLost, findNewestRecord } from '#api/virtual-machine-identity/record-state.ts';
import { VIRTUAL_MACHINE_INSTANCES, type VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import { VIRTUAL_MACHINE_RESTORES } from '#api/virtual-machine-restore/kind.ts';
import { VIRTUAL_MACHINE_SNAPSHOT_CONTENTS } from '#api/virtual-machine-snapshot-content/kind.ts';
import { VIRTUAL_MACHINE_SNAPSHOTS } from '#api/virtual-machine-snapshot/kind.ts';
import { keyOf, objectKey } from '#client/object-key.ts';
import { allClaimKeysOfVm, indexVmsByClaim, listVmsOfClaim } from '#controllers/shared/indexes/claim-keys.ts';
import {
  CLAIMS_BY_STATE,
  stateIndexKey,
  stateIndexKeysOf,
} from '#controllers/shared/persistent-state/claims-by-state.ts';
import {
  CONTENTS_BY_VM,
  contentsOf,
  contentVmKeys,
  contentVmUids,
} from '#controllers/shared/indexes/contents-by-vm.ts';
import type { PlaneController } from '#controllers/shared/plane-controller.ts';
import type { ControllerParts } from '#runtime/controller-parts.ts';
import { isOrphan } from '#controllers/vm/adopt-instance.ts';
import { concludeVm, decideVm } from '#controllers/vm/decide-vm.ts';
import { releaseInstance } from '#controllers/vm/delete.ts';
import { awaitsRelease, isReleasable, releaseRecord } from '#controllers/vm/identity/record-finalizer.ts';
import { ownRecord } from '#controllers/vm/identity/identity.ts';
import { lockOf } from '#controllers/vm/lock.ts';
import {
  UNFINISHED_BY_VM,
  vmKeysOfUnfinishedRestore,
  vmKeysOfUnfinishedSnapshot,
} from '#controllers/shared/indexes/unfinished-by-vm.ts';
import { persistsLegacyUuid } from '#controllers/vm/identity/persist-firmware.ts';
import {
  addressSharerSources,
  claimedTexts,
  type IdentityHolders,
  ValueHolders,
  vmAndSharerSource,
  type ValueSharers,
} from '#controllers/vm/identity/value-holders.ts';
import { definitionKeysOf, findMissingNetworks } from '#controllers/vm/missing-networks.ts';
import { neededClaimNames } from '#controllers/shared/launcher/needed-volumes.ts';
import type { DeletedClaim, NeededClaim, SharedAddress, SharedMac, VmWorld } from '#controllers/vm/vm-world.ts';
import { CUSTOM_RESOURCE_DEFINITIONS, PERSISTENT_VOLUME_CLAIMS, type PersistentVolumeClaim } from '#kube/core-kinds.ts';
import { controllerUid, isDeleting, type Stored } from '#kube/meta.ts';
import {
  type ControllerDefinition,
  defineController,
  presenceOnly,
  source,
  startController,
} from '#runtime/controller.ts';
import { createLiveReader } from '#runtime/live-reader.ts';
import { EMPTY_PLAN } from '#runtime/plan.ts';

const CONCURRENCY = 10;
/** The name of an index: VMs by the key of the claim of their persistent state (stateIndexKey). */
const BY_STATE = 'vm-of-state';
/** The name of an index: VMs without a machine type. */
const UNTYPED = 'untyped';
/** The name of an index: VMs without a firmware uuid. */
const WITHOUT_UUID = 'without-uuid';
/** The name of an index: VMs by the keys of the NetworkAttachmentDefinitions that their networks could mean. */
const BY_NETWORK_DEFINITION = 'network-definition';
const CONFIGURATION_KEY = keyOf({ namespace: SYSTEM_NAMESPACE, name: KUBEVIRT_NAME });

const LEGACY_USE = { use: 'vm' };

/** The world of a VM that is gone: its instance and record may still have our finalizers. */
interface DeletedVmWorld {
  readonly vmi: Stored<VirtualMachineInstance> | undefined;
  readonly record: Stored<VirtualMachineIdentity> | undefined;
  readonly recordIsReleasable: boolean;
}

type RecordView = Pick<VmWorld, 'identity' | 'lostRecord'>;

export const vmController: PlaneController = {
  account: 'vm-controller',
  eventSource: 'virtualmachine-controller',
  start: (parts) => [startController(definition(parts), parts)],
};

function definition({
  client,
  informer,
  clock,
  metrics,
}: ControllerParts): ControllerDefinition<VmWorld | DeletedVmWorld> {
  const vms = informer(VIRTUAL_MACHINES);
  const vmis = informer(VIRTUAL_MACHINE_INSTANCES);
  const identities = informer(VIRTUAL_MACHINE_IDENTITIES);
  const claims = informer(PERSISTENT_VOLUME_CLAIMS);
  const kubevirts = informer(KUBEVIRTS);
  const snapshots = informer(VIRTUAL_MACHINE_SNAPSHOTS);
  const restores = informer(VIRTUAL_MACHINE_RESTORES);
  const definitions = informer(CUSTOM_RESOURCE_DEFINITIONS);
  const networkDefinitions = informer(NETWORK_ATTACHMENT_DEFINITIONS);
  const contents = informer(VIRTUAL_MACHINE_SNAPSHOT_CONTENTS);
  const addresses = informer(NETWORK_ADDRESSES);
  const networks = informer(GUEST_NETWORKS);
  addresses.addIndex(ADDRESSES_BY_OWNER, (address) => [ownerKeyOf(address)]);
  contents.addIndex(CONTENTS_BY_VM, contentVmUids);
  indexVmsByClaim(vms);
  vms.addIndex(BY_NETWORK_DEFINITION, definitionKeysOf);
  vms.addIndex(UNTYPED, (vm) => (templateSpec(vm).domain.machine?.type ? [] : [UNTYPED]));
  vms.addIndex(WITHOUT_UUID, (vm) => (firmwareUuidOf(vm) === undefined ? [WITHOUT_UUID] : []));
  // Includes VMs without persistent state now: their status may name the claim of earlier state.
  vms.addIndex(BY_STATE, (vm) => [stateIndexKey(vm.metadata)]);
  claims.addIndex(CLAIMS_BY_STATE, stateIndexKeysOf);
  snapshots.addIndex(UNFINISHED_BY_VM, vmKeysOfUnfinishedSnapshot);
  restores.addIndex(UNFINISHED_BY_VM, vmKeysOfUnfinishedRestore);
  const readLive = createLiveReader(client);
  const sharedAddresses = new ValueHolders();
  const holders: IdentityHolders = { uuids: new ValueHolders(), macs: new ValueHolders() };
  const legacyUuids = metrics.counter(LEGACY_UUID_METRIC);
  legacyUuids.add(LEGACY_USE, 0);
  metrics.gaugeFunc(
    { name: 'selfsame_duplicate_firmware_uuids', help: 'VMs whose firmware uuid another VM has, too.' },
    () => holders.uuids.sharingCount,
  );
  metrics.gaugeFunc(
    {
      name: 'selfsame_duplicate_network_addresses',
      help: 'IP addresses of VMs on the default network that another VM has or asks for, too.',
    },
    () => sharedAddresses.sharingCount,
  );
  metrics.gaugeFunc(
    { name: 'selfsame_duplicate_mac_addresses', help: 'MAC addresses of VMs that another VM has, too.' },
    () => holders.macs.sharingCount,
  );

  function claimsOf(vm: Stored<VirtualMachine>): NeededClaim[] {
    const { namespace } = vm.metadata;
    return neededClaimNames(templateSpec(vm)).map((name) => ({ name, claim: claims.get(keyOf({ namespace, name })) }));
  }

  const diskUserFor =
    ({ metadata: { namespace, uid } }: Stored<VirtualMachine>) =>
    (name: string) =>
      findStateBlocker(listVmsOfClaim(vms, keyOf({ namespace, name })), name, { uid })?.metadata.name;

  function ownerOf(vm: Stored<VirtualMachine>): StateOwner {
    return { ...stateOwnerOf(vm), diskUserOf: diskUserFor(vm) };
  }

  /** Returns the claims that may hold the state, and those that status and instance name, even without marks. */
  function stateClaimsOf(vm: Stored<VirtualMachine>, vmi: Stored<VirtualMachineInstance> | undefined) {
    const { namespace } = vm.metadata;
    const reported = vmi === undefined ? undefined : reportedStateClaim(vmi);
    const named = [vm.status?.stateClaim?.name, reported].flatMap((name) =>
      name === undefined ? [] : (claims.get(keyOf({ namespace, name })) ?? []),
    );
    return [...new Set([...named, ...claims.byIndex(CLAIMS_BY_STATE, stateIndexKey(vm.metadata))])];
  }

  function stateConflictsOf(vm: Stored<VirtualMachine>): Stored<PersistentVolumeClaim>[] {
    if (!needsState(templateSpec(vm))) return [];
    return findStateConflicts(claims.byIndex(CLAIMS_BY_STATE, stateIndexKey(vm.metadata)), ownerOf(vm));
  }

  /** Returns the disks, and the state if no other claim has replaced it. */
  function deletedClaimsOf(vm: Stored<VirtualMachine>): DeletedClaim[] {
    const { namespace, uid } = vm.metadata;
    const spec = templateSpec(vm);
    const disks = claimNamesOf(spec).flatMap((name) => claims.get(keyOf({ namespace, name })) ?? []);
    const states = needsState(spec) ? claims.byIndex(CLAIMS_BY_STATE, stateIndexKey(vm.metadata)) : [];
    const isReplaced = findStateClaim(states, ownerOf(vm)) !== undefined;
    const own = isReplaced ? [] : states.filter((claim) => controllerUid(claim) === uid);
    return [
      ...disks.filter(isDeleting).map((claim) => deletedClaim(claim, 'disk')),
      ...own.filter(isDeleting).map((claim) => deletedClaim(claim, 'state')),
    ];
  }

  function deletedClaim({ metadata, spec }: Stored<PersistentVolumeClaim>, holds: DeletedClaim['holds']): DeletedClaim {
    return { name: metadata.name, holds, ...(spec.volumeName && { volume: spec.volumeName }) };
  }

  function vmsOf(claim: Stored<PersistentVolumeClaim>): string[] {
    const key = objectKey(claim);
    const withState = stateIndexKeysOf(claim).flatMap((state) => vms.byIndex(BY_STATE, state));
    const users = [...listVmsOfClaim(vms, key), ...withState];
    return users.map(objectKey);
  }

  /** Returns the VMs that could have the claims of this VM as their state. */
  function vmsOfDisks(vm: Stored<VirtualMachine>): string[] {
    return allClaimKeysOfVm(vm).flatMap((key) => {
      const claim = claims.get(key);
      const states = claim === undefined ? [] : stateIndexKeysOf(claim);
      return states.flatMap((state) => vms.byIndex(BY_STATE, state)).map(objectKey);
    });
  }

  /**
   * Reads the restore by its name, because it may be finished. This controller clears restoreInProgress, and not before it
   * has seen the template that the restore wrote.
   */
  function restoredVolumesOf({ metadata: { namespace }, status }: Stored<VirtualMachine>) {
    const name = status?.restoreInProgress;
    return name === undefined ? undefined : restores.get(keyOf({ namespace, name }))?.status?.restores;
  }

  function sharersOf(vm: Stored<VirtualMachine>): ValueSharers | undefined {
    const uuid = firmwareUuidOf(vm);
    return uuid === undefined ? undefined : holders.uuids.sharersOf(uuid, objectKey(vm));
  }

  function macSharersOf(vm: Stored<VirtualMachine>): SharedMac[] {
    return macAddressesOf(vm).flatMap((macAddress) => {
      const sharers = holders.macs.sharersOf(macAddress, objectKey(vm));
      return sharers === undefined ? [] : [{ macAddress, sharers }];
    });
  }

  function addressSharersOf(vm: Stored<VirtualMachine>, record: Stored<VirtualMachineIdentity> | undefined) {
    const own = ownRecord({ vm, identity: record });
    return claimedTexts(vm, own).flatMap((address): SharedAddress[] => {
      const sharers = sharedAddresses.sharersOf(address, objectKey(vm));
      return sharers === undefined ? [] : [{ address, sharers }];
    });
  }

  function addressesOf(vm: Stored<VirtualMachine>, vmi: Stored<VirtualMachineInstance> | undefined) {
    const held = addresses.byIndex(ADDRESSES_BY_OWNER, objectKey(vm));
    return ownedAddressesOf(
      held.filter(({ spec }) => spec.owner.uid === vm.metadata.uid),
      networks.get(DEFAULT_NETWORK),
      vmi,
    );
  }

  /**
   * Reads the VM from the server before it becomes an owner: an instance whose owner is gone would be
   * garbage-collected.
   */
  async function exists({ metadata }: Stored<VirtualMachine>, signal: AbortSignal): Promise<boolean> {
    const { name, namespace, uid } = metadata;
    const live = await readLive(VIRTUAL_MACHINES, { name, namespace }, { signal });
    return live?.metadata.uid === uid && !isDeleting(live);
  }

  /**
   * Reads the instance from the server before the mark is removed: the cache of instances may lag behind that of VMs.
   */
  async function markedInstanceOf(
    vm: Stored<VirtualMachine>,
    vmi: Stored<VirtualMachineInstance> | undefined,
    signal: AbortSignal,
  ): Promise<Stored<VirtualMachineInstance> | undefined> {
    if (!isRestartMarked(vm) || restartMarkOf(vm, vmi).machineTypeRestartRequired === true) return undefined;
    const { name, namespace } = vm.metadata;
    return await readLive(VIRTUAL_MACHINE_INSTANCES, { name, namespace }, { signal });
  }

  /** Reads the VM from the server: a record is not released because of a cache that lags behind. */
  async function isRecordReleasable(record: Stored<VirtualMachineIdentity> | undefined, signal: AbortSignal) {
    if (record === undefined || !awaitsRelease(record)) return false;
    const { name, namespace } = record.metadata;
    return isReleasable(record, await readLive(VIRTUAL_MACHINES, { name, namespace }, { signal }));
  }

  /** Reads the record from the server before it counts as lost. */
  async function observeRecord(vm: Stored<VirtualMachine>, key: string, signal: AbortSignal): Promise<RecordView> {
    const cached = identities.get(key);
    if (isDeleting(vm) || !isRecordLost(vm, ownRecord({ vm, identity: cached }))) return { identity: cached };
    const { name, namespace } = vm.metadata;
    const identity = await readLive(VIRTUAL_MACHINE_IDENTITIES, { name, namespace }, { signal });
    if (!isRecordLost(vm, ownRecord({ vm, identity }))) return { identity };
    return { identity, lostRecord: { snapshot: findNewestRecord(vm, contentsOf(contents, vm)) } };
  }

  return defineController<VmWorld | DeletedVmWorld>({
    name: 'vm-controller',
    type: VIRTUAL_MACHINES,
    concurrency: CONCURRENCY,
    sources: [
      vmAndSharerSource(vms, holders),
      ...addressSharerSources(vms, identities, sharedAddresses),
      source(addresses, (address) => [ownerKeyOf(address)]),
      // Decides whether the next instance asks for the addresses of the record.
      source(networks, () => vms.list().map(objectKey)),
      // A claim that is a disk of another VM is not the state of this one.
      source(vms, vmsOfDisks, { part: (vm) => [isProtected(vm), ...allClaimKeysOfVm(vm)] }),
      // Instances and records have the name of their VM.
      source(vmis),
      source(identities),
      source(claims, vmsOf),
      source(snapshots, vmKeysOfUnfinishedSnapshot),
      source(restores, vmKeysOfUnfinishedRestore),
      // A lost record is rebuilt from the newest content.
      source(contents, contentVmKeys),
      // A new default machine type concerns the VMs without one; a running VM may need a restart for it.
      source(kubevirts, () => vms.byIndex(UNTYPED, UNTYPED).map(objectKey)),
      source(
        networkDefinitions,
        (definition) => vms.byIndex(BY_NETWORK_DEFINITION, objectKey(definition)).map(objectKey),
        { part: presenceOnly },
      ),
      source(definitions, ({ metadata }) =>
        metadata.name === VM_DEFINITION ? vms.byIndex(WITHOUT_UUID, WITHOUT_UUID).map(objectKey) : [],
      ),
    ],
    async observe(key, { signal }) {
      const vm = vms.get(key);
      const named = vmis.get(key);
      const cachedRecord = identities.get(key);
      const recordIsReleasable = await isRecordReleasable(cachedRecord, signal);
      if (vm === undefined) return { vmi: named, record: cachedRecord, recordIsReleasable };
      const own = named !== undefined && controllerUid(named) === vm.metadata.uid;
      return {
        vm,
        ...(own ? { vmi: named } : { foreignVmi: named }),
        ...(!own && named !== undefined && isOrphan(named) ? { mayAdopt: await exists(vm, signal) } : {}),
        markedInstance: await markedInstanceOf(vm, named, signal),
        ...(recordIsReleasable ? { identity: cachedRecord, recordIsReleasable } : await observeRecord(vm, key, signal)),
        configuration: configurationOf(kubevirts.get(CONFIGURATION_KEY)),
        uuidAdmissionSince: uuidAdmissionSince(definitions.get(VM_DEFINITION)),
        lock: lockOf(
          vm,
          {
            snapshots: snapshots.byIndex(UNFINISHED_BY_VM, key),
            restores: restores.byIndex(UNFINISHED_BY_VM, key),
          },
          named,
        ),
        restoredVolumes: restoredVolumesOf(vm),
        sharers: sharersOf(vm),
        sharedMacs: macSharersOf(vm),
        missingNetworks: findMissingNetworks(vm, (name) => networkDefinitions.get(name) !== undefined),
        sharedAddresses: addressSharersOf(vm, cachedRecord),
        addresses: addressesOf(vm, own ? named : undefined),
        network: networks.get(DEFAULT_NETWORK),
        claims: claimsOf(vm),
        deletedClaims: deletedClaimsOf(vm),
        stateConflicts: stateConflictsOf(vm),
        stateClaims: stateClaimsOf(vm, own ? named : undefined),
        claimUidOf: (name) => claims.get(keyOf({ namespace: vm.metadata.namespace, name }))?.metadata.uid,
        diskUserOf: diskUserFor(vm),
        now: clock.now(),
      };
    },
    decide(world) {
      if ('vm' in world) return decideVm(world);
      const { vmi, record, recordIsReleasable } = world;
      const changes = [
        releaseInstance(vmi),
        recordIsReleasable && record !== undefined ? releaseRecord(record) : undefined,
      ].filter((change) => change !== undefined);
      return changes.length === 0 ? EMPTY_PLAN : { changes, continueOnError: true };
    },
    conclude: (world, failures) => ('vm' in world ? concludeVm(world, failures) : undefined),
    onApplied(change) {
      if (persistsLegacyUuid(change)) legacyUuids.add(LEGACY_USE);
    },
    subject: (world) => ('vm' in world ? world.vm : undefined),
  });
}
