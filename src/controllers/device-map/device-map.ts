/**
 * The controller that writes the status of identity records: the devices with which each VM ran last, so that the next
 * start gives every device the same address. It reads changed devices from the nodes (device-reports.ts);
 * controllers/vm writes the spec of a record.
 *
 *   VMI status.deviceHash ≠ the record's ──► list, one call for all VMs of a node ──► rows and hash, in one write
 *   VMI status.deviceHash = the record's ──► no call
 */
import { configurationOf } from '#api/kubevirt/configuration.ts';
import { KUBEVIRTS, type KubeVirt } from '#api/kubevirt/kind.ts';
import {
  IMPORTED_DEVICES_ANNOTATION,
  KUBEVIRT_NAME,
  NEW_LAYOUT_ANNOTATION,
  STARTED_ANNOTATION,
  SYSTEM_NAMESPACE,
  VMI_NAME_LABEL,
} from '#api/names.ts';
import { VIRTUAL_MACHINES, type VirtualMachine } from '#api/virtual-machine/kind.ts';
import { VIRTUAL_MACHINE_IDENTITIES, type VirtualMachineIdentity } from '#api/virtual-machine-identity/kind.ts';
import { isRecordLost, findNewestRecord } from '#api/virtual-machine-identity/record-state.ts';
import { VIRTUAL_MACHINE_INSTANCE_MIGRATIONS } from '#api/virtual-machine-instance-migration/kind.ts';
import { VIRTUAL_MACHINE_INSTANCES } from '#api/virtual-machine-instance/kind.ts';
import { VIRTUAL_MACHINE_SNAPSHOT_CONTENTS } from '#api/virtual-machine-snapshot-content/kind.ts';
import type { Informer } from '#client/informer.ts';
import { objectKey } from '#client/object-key.ts';
import {
  CONTENTS_BY_VM,
  contentsOf,
  contentVmKeys,
  contentVmUids,
} from '#controllers/shared/indexes/contents-by-vm.ts';
import { REREAD_MS, decideDeviceMap, losesAddressesWhenStopped } from '#controllers/device-map/decide-device-map.ts';
import { type DeviceMapWorld, dueReading } from '#controllers/device-map/device-map-world.ts';
import { DeviceReports, type DeviceReportsOptions } from '#controllers/device-map/device-reports.ts';
import type { HostReader } from '#controllers/device-map/host-reader.ts';
import { isReclassified } from '#controllers/device-map/special-devices.ts';
import { toDeviceReading } from '#controllers/device-map/reading.ts';
import { handedOverClaim } from '#controllers/device-map/state-claim.ts';
import type { PlaneController } from '#controllers/shared/plane-controller.ts';
import { deepEqual } from '#kube/deep.ts';
import type { Stored } from '#kube/meta.ts';
import { labelValueErrors } from '#kube/names.ts';
import { timestamp } from '#lib/clock.ts';
import {
  type ControllerDefinition,
  defineController,
  source,
  type Source,
  startController,
} from '#runtime/controller.ts';
import type { ControllerParts } from '#runtime/controller-parts.ts';
import type { Recheck } from '#runtime/decision-reads.ts';
import { createLiveReader } from '#runtime/live-reader.ts';

/** More than MAX_VMS_PER_CALL, so that all reads for one call can wait for it at the same time. */
const CONCURRENCY = 1000;
/** The name of the controller, its account and its event source. */
export const DEVICE_MAP = 'device-map-controller';

const KUBEVIRT_KEY = `${SYSTEM_NAMESPACE}/${KUBEVIRT_NAME}`;

/** Migrations are read once for each hand-over of the state, before it is recorded. */
const MIGRATION_RECHECK: Recheck = {
  type: VIRTUAL_MACHINE_INSTANCE_MIGRATIONS,
  everyMs: 60_000,
  because: 'only the name of a migration is read, which never changes',
};

type DeviceMapOptions = Pick<DeviceReportsOptions, 'gatherMs'>;

export function deviceMapController(hosts: HostReader, options: DeviceMapOptions = {}): PlaneController {
  return {
    account: DEVICE_MAP,
    eventSource: DEVICE_MAP,
    start: (parts) => [startController(definition(parts, { hosts, ...options }), parts)],
  };
}

function definition(
  parts: ControllerParts,
  options: DeviceMapOptions & { readonly hosts: HostReader },
): ControllerDefinition<DeviceMapWorld> {
  const { informer, client, clock, log, signal: stopping } = parts;
  const identities = informer(VIRTUAL_MACHINE_IDENTITIES);
  const vmis = informer(VIRTUAL_MACHINE_INSTANCES);
  const vms = informer(VIRTUAL_MACHINES);
  const kubevirts = informer(KUBEVIRTS);
  const contents = informer(VIRTUAL_MACHINE_SNAPSHOT_CONTENTS);
  contents.addIndex(CONTENTS_BY_VM, contentVmUids);
  const reports = new DeviceReports({
    ...options,
    clock,
    log: log.child({ controller: DEVICE_MAP }),
    signal: stopping,
  });
  const readLive = createLiveReader(client);

  function observeCaches(key: string): DeviceMapWorld | undefined {
    const identity = identities.get(key);
    if (identity === undefined) return undefined;
    const { specialManagedDevices: special } = configurationOf(kubevirts.get(KUBEVIRT_KEY));
    const vm = vms.get(key);
    const snapshot = vm === undefined ? undefined : snapshotOfLostRecord(vm, identity);
    return { identity, vm, vmi: vmis.get(key), snapshot, special, now: timestamp(clock.now()) };
  }

  function snapshotOfLostRecord(vm: Stored<VirtualMachine>, identity: Stored<VirtualMachineIdentity>) {
    if (!isRecordLost(vm, identity)) return undefined;
    return findNewestRecord(vm, contentsOf(contents, vm));
  }

  async function readDevices(key: string, { node, vmId }: { readonly node: string; readonly vmId: string }) {
    const report = await reports.read(node, vmId);
    const reading = 'vm' in report ? toDeviceReading(report.vm) : undefined;
    if (reading !== undefined && reading.ignored > 0) {
      const { ignored } = reading;
      log.warn(
        { controller: DEVICE_MAP, key, node, ignored },
        'Ignored devices without an id, a type or a device name',
      );
    }
    const world = observeCaches(key);
    const none = 'vm' in report ? { retryAfterMs: REREAD_MS } : report;
    return world === undefined ? undefined : { ...world, reading: reading ?? none };
  }

  /** Resolves to the name of the migration that handed over the state; the instance has only its uid. */
  async function migrationOf(world: DeviceMapWorld, { signal }: { signal: AbortSignal }): Promise<string | undefined> {
    if (world.identity.status?.devices === undefined || handedOverClaim(world) === undefined) return undefined;
    const { namespace, name } = world.identity.metadata;
    const uid = world.vmi?.status?.migrationState?.migrationUid;
    // Names that are too long for a label cannot be selected; then the history has the uid of the migration.
    if (labelValueErrors(name).length > 0) return undefined;
    const labelSelector = `${VMI_NAME_LABEL}=${name}`;
    const { items } = await client.list(VIRTUAL_MACHINE_INSTANCE_MIGRATIONS, { namespace, labelSelector, signal });
    return items.find(({ metadata }) => metadata.uid === uid)?.metadata.name;
  }

  return defineController<DeviceMapWorld>({
    name: DEVICE_MAP,
    type: VIRTUAL_MACHINE_IDENTITIES,
    concurrency: CONCURRENCY,
    // Instances and records have the name of their VM.
    sources: [
      source(identities),
      source(vmis),
      relevantVmChanges(vms),
      specialListChanges(kubevirts, identities),
      source(contents, contentVmKeys),
    ],
    rechecks: [MIGRATION_RECHECK],
    async observe(key, { signal }) {
      const seen = observeCaches(key);
      if (seen === undefined) return undefined;
      const due = dueReading(seen);
      const read = due === undefined ? seen : await readDevices(key, due);
      if (read === undefined) return undefined;
      const { name, namespace } = read.identity.metadata;
      const migrationName = await migrationOf(read, { signal });
      // With a cache that lags behind an edit, the history would name an earlier author.
      const vm = mayAddEntry(read, due) ? await readLive(VIRTUAL_MACHINES, { name, namespace }, { signal }) : read.vm;
      const world = { ...read, vm, ...(migrationName !== undefined && { migrationName }) };
      if (due !== undefined) return world;
      if (!losesAddressesWhenStopped(world)) return world;
      // Rows are not removed because of a cache that lags behind a start or a restore.
      const now = await readLive(VIRTUAL_MACHINES, { name, namespace }, { signal });
      return { ...world, vm: now, vmi: await readLive(VIRTUAL_MACHINE_INSTANCES, { name, namespace }, { signal }) };
    },
    decide: decideDeviceMap,
    subject: ({ identity }) => identity,
  });
}

/**
 * Wakes the records whose devices a changed `specialManagedDevices` classifies differently. No node is called: the rows
 * are classified from the record.
 */
function specialListChanges(kubevirts: Informer<KubeVirt>, identities: Informer<VirtualMachineIdentity>): Source {
  return {
    cache: kubevirts,
    subscribe: (add) =>
      kubevirts.onChange((key, change) => {
        if (key !== KUBEVIRT_KEY) return;
        const { specialManagedDevices: special } = configurationOf(change.new);
        if (deepEqual(configurationOf(change.old).specialManagedDevices, special)) return;
        for (const identity of identities.list()) {
          if (isReclassified(identity.status?.devices ?? [], special)) add(objectKey(identity));
        }
      }),
  };
}

/** Reports whether the decision may add an entry to the history of an existing record. */
function mayAddEntry({ identity }: DeviceMapWorld, due: unknown): boolean {
  const { recorded, devices } = identity.status ?? {};
  return (
    (due !== undefined && devices !== undefined) || (recorded !== undefined && !deepEqual(recorded, identity.spec))
  );
}

/** Wakes the record when a field of the VM changes that decisions read; most of its status is irrelevant. */
function relevantVmChanges(vms: Informer<VirtualMachine>): Source {
  return {
    cache: vms,
    subscribe: (add) =>
      vms.onChange((key, change) => {
        if (change.new !== undefined && relevantFields(change.old) !== relevantFields(change.new)) add(key);
      }),
  };
}

function relevantFields(vm: VirtualMachine | undefined): string {
  const { restoreInProgress, stateChangeRequests = [], identityRecordUID } = vm?.status ?? {};
  const { uid, generation, annotations = {} } = vm?.metadata ?? {};
  return JSON.stringify([
    ...[uid, generation, restoreInProgress, stateChangeRequests.length > 0, identityRecordUID],
    ...[NEW_LAYOUT_ANNOTATION, IMPORTED_DEVICES_ANNOTATION, STARTED_ANNOTATION].map((name) => annotations[name]),
  ]);
}
