/**
 * The status of identity records: how each VM ran last, so that its next start puts every device where it was. It reads
 * what has changed from the nodes (device-reports.ts); the spec of a record is controllers/vm's.
 *
 *   VMI status.deviceHash ≠ the record's ──► list, one call for all of a node ──► rows and hash, in one write
 *   VMI status.deviceHash = the record's ──► nobody is asked
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
import { isRecordLost, newestRecordIn } from '#api/virtual-machine-identity/record-state.ts';
import { VIRTUAL_MACHINE_INSTANCE_MIGRATIONS } from '#api/virtual-machine-instance-migration/kind.ts';
import { VIRTUAL_MACHINE_INSTANCES } from '#api/virtual-machine-instance/kind.ts';
import { VIRTUAL_MACHINE_SNAPSHOT_CONTENTS } from '#api/virtual-machine-snapshot-content/kind.ts';
import type { Informer } from '#client/informer.ts';
import { objectKey } from '#client/object-key.ts';
import { CONTENTS_BY_VM, contentsOf, contentVmKeys, contentVmUids } from '#controllers/contents-by-vm.ts';
import { ASK_AGAIN_MS, decideDeviceMap, forgetsAtRest } from '#controllers/device-map/decide-device-map.ts';
import { type DeviceMapWorld, readingDue } from '#controllers/device-map/device-map-world.ts';
import { DeviceReports, type DeviceReportsOptions } from '#controllers/device-map/device-reports.ts';
import type { HostReader } from '#controllers/device-map/host-reader.ts';
import { isClassifiedAnew } from '#controllers/device-map/special-devices.ts';
import { readingOf } from '#controllers/device-map/reading.ts';
import { handedOverClaim } from '#controllers/device-map/state-claim.ts';
import type { PlaneController } from '#controllers/plane-controller.ts';
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
import { liveLook } from '#runtime/live-look.ts';

/** More than a call can ask for: whoever waits for the same call waits at the same time. */
const CONCURRENCY = 1000;
/** The account, and what it calls itself. */
export const DEVICE_MAP = 'device-map-controller';

const KUBEVIRT_KEY = `${SYSTEM_NAMESPACE}/${KUBEVIRT_NAME}`;

/** Read once for each hand-over of the state, before it is on record. */
const MIGRATION_RECHECK: Recheck = {
  type: VIRTUAL_MACHINE_INSTANCE_MIGRATIONS,
  everyMs: 60_000,
  because: 'only the name of a migration is read, which never changes',
};

export type DeviceMapOptions = Pick<DeviceReportsOptions, 'gatherMs'>;

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
  const look = liveLook(client);

  function known(key: string): DeviceMapWorld | undefined {
    const identity = identities.get(key);
    if (identity === undefined) return undefined;
    const { specialManagedDevices: special } = configurationOf(kubevirts.get(KUBEVIRT_KEY));
    const vm = vms.get(key);
    const snapshot = vm === undefined ? undefined : snapshotOfLost(vm, identity);
    return { identity, vm, vmi: vmis.get(key), snapshot, special, now: timestamp(clock.now()) };
  }

  function snapshotOfLost(vm: Stored<VirtualMachine>, identity: Stored<VirtualMachineIdentity>) {
    if (!isRecordLost(vm, identity)) return undefined;
    return newestRecordIn(vm, contentsOf(contents, vm));
  }

  async function readDevices(key: string, { node, vmId }: { readonly node: string; readonly vmId: string }) {
    const report = await reports.read(node, vmId);
    const reading = 'vm' in report ? readingOf(report.vm) : undefined;
    if (reading !== undefined && reading.leftOut > 0) {
      const { leftOut } = reading;
      log.warn(
        { controller: DEVICE_MAP, key, node, leftOut },
        'Devices without an id, a type or a device are left out',
      );
    }
    const world = known(key);
    const none = 'vm' in report ? { retryAfterMs: ASK_AGAIN_MS } : report;
    return world === undefined ? undefined : { ...world, reading: reading ?? none };
  }

  /** An instance says only the uid of the migration that moved it. */
  async function migrationOf(world: DeviceMapWorld, { signal }: { signal: AbortSignal }): Promise<string | undefined> {
    if (world.identity.status?.devices === undefined || handedOverClaim(world) === undefined) return undefined;
    const { namespace, name } = world.identity.metadata;
    const uid = world.vmi?.status?.migrationState?.migrationUid;
    // Longer names are no labels; then the history names the migration by its uid.
    if (labelValueErrors(name).length > 0) return undefined;
    const labelSelector = `${VMI_NAME_LABEL}=${name}`;
    const { items } = await client.list(VIRTUAL_MACHINE_INSTANCE_MIGRATIONS, { namespace, labelSelector, signal });
    return items.find(({ metadata }) => metadata.uid === uid)?.metadata.name;
  }

  return defineController<DeviceMapWorld>({
    name: DEVICE_MAP,
    type: VIRTUAL_MACHINE_IDENTITIES,
    concurrency: CONCURRENCY,
    // An instance has the name of its VM, and so has the record.
    sources: [
      source(identities),
      source(vmis),
      wishChanges(vms),
      specialListChanges(kubevirts, identities),
      source(contents, contentVmKeys),
    ],
    rechecks: [MIGRATION_RECHECK],
    async observe(key, { signal }) {
      const seen = known(key);
      if (seen === undefined) return undefined;
      const due = readingDue(seen);
      const read = due === undefined ? seen : await readDevices(key, due);
      if (read === undefined) return undefined;
      const { name, namespace } = read.identity.metadata;
      const migrationName = await migrationOf(read, { signal });
      // A cache that lags behind an edit would name an earlier author of the change.
      const vm = isChanged(read, due) ? await look(VIRTUAL_MACHINES, { name, namespace }, { signal }) : read.vm;
      const world = { ...read, vm, ...(migrationName !== undefined && { migrationName }) };
      if (due !== undefined) return world;
      if (!forgetsAtRest(world)) return world;
      // Rows are not given up because of a cache that lags behind a start or a restore.
      const now = await look(VIRTUAL_MACHINES, { name, namespace }, { signal });
      return { ...world, vm: now, vmi: await look(VIRTUAL_MACHINE_INSTANCES, { name, namespace }, { signal }) };
    },
    decide: decideDeviceMap,
    subject: ({ identity }) => identity,
  });
}

/**
 * Wakes the records that a changed `specialManagedDevices` classifies in another way. Records with no such device are not
 * woken, and no node is asked: the rows are classified from the record.
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
          if (isClassifiedAnew(identity.status?.devices ?? [], special)) add(objectKey(identity));
        }
      }),
  };
}

/** Reports whether an entry about a record that is known is about to be written. */
function isChanged({ identity }: DeviceMapWorld, due: unknown): boolean {
  const { recorded, devices } = identity.status ?? {};
  return (
    (due !== undefined && devices !== undefined) || (recorded !== undefined && !deepEqual(recorded, identity.spec))
  );
}

/** Wakes the record when something changes that its decisions read of the VM; most of the VM's status is not. */
function wishChanges(vms: Informer<VirtualMachine>): Source {
  return {
    cache: vms,
    subscribe: (add) =>
      vms.onChange((key, change) => {
        if (change.new !== undefined && wishText(change.old) !== wishText(change.new)) add(key);
      }),
  };
}

function wishText(vm: VirtualMachine | undefined): string {
  const { restoreInProgress, stateChangeRequests = [], identityRecordUID } = vm?.status ?? {};
  const { uid, generation, annotations = {} } = vm?.metadata ?? {};
  return JSON.stringify([
    ...[uid, generation, restoreInProgress, stateChangeRequests.length > 0, identityRecordUID],
    ...[NEW_LAYOUT_ANNOTATION, IMPORTED_DEVICES_ANNOTATION, STARTED_ANNOTATION].map((name) => annotations[name]),
  ]);
}
