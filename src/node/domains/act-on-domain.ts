/** Carries out the actions of decide-domain.ts. Each action is one call and its bookkeeping; nothing is decided here. */
import { MIGRATED_REASON } from '#api/names.ts';
import { CLAIM_IN_USE } from '#api/storage/disk-use.ts';
import { stateClaimIn } from '#api/storage/persistent-state.ts';
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import { findCondition } from '#kube/conditions.ts';
import type { Stored } from '#kube/meta.ts';
import { invariant, unreachable } from '#lib/invariant.ts';
import { actOnDevice } from '#node/domains/hotplug/act-on-device.ts';
import { actOnMigration } from '#node/domains/act-on-migration.ts';
import type { HotplugState } from '#node/domains/hotplug/hotplug-devices.ts';
import type { DomainAction } from '#node/domains/domain-action.ts';
import type { DomainWorld } from '#node/domains/domain-world.ts';
import { START_FAILED, startInstance } from '#node/domains/start-instance.ts';
import { NETWORK_WAITS } from '#node/guests/instance-networks.ts';
import type { DomainActionParts } from '#node/domains/domain-action-parts.ts';
import { PAUSED_IO_ERROR } from '#node/domains/vmi-report.ts';
import { writeVmiStatus } from '#node/domains/write-vmi-status.ts';
import { progressToReport } from '#node/domains/decide-outgoing.ts';
import { buildPodStatus, type PodView } from '#node/pods/pod-status.ts';
import { removePod, reportPod } from '#node/pods/pod-writer.ts';
import { requestPodToken } from '#node/pods/pod-token.ts';
import { errorMessage } from '#lib/error-message.ts';

/**
 * `changed`: the domain changed, so that the remaining actions are obsolete. `decideAgain`: the remaining actions are still
 * valid, and another decision follows them. `afterMs`: when to decide again at the latest.
 */
type ActionResult = { readonly changed: true } | { readonly decideAgain?: true; readonly afterMs?: number };

const CHANGED: ActionResult = { changed: true };

/** KubeVirt's reason of the Event. */
const IO_ERROR_EVENT = 'IOerror';

/** Reasons of failed starts that are tried again and reported in an Event. Other waits are a part of a normal start. */
const REPORTED_WAITS: ReadonlySet<string> = new Set([START_FAILED, CLAIM_IN_USE, ...NETWORK_WAITS]);

export async function actOnDomain(
  id: string,
  action: DomainAction,
  world: DomainWorld,
  parts: DomainActionParts,
): Promise<ActionResult> {
  const { hypervisor, volumes, notes, clock } = parts;
  switch (action.do) {
    case 'start':
      await start(id, world, parts);
      return CHANGED;
    case 'resume':
      // The grace period starts even if the guest cannot be resumed: otherwise a hanging QEMU would never be switched off.
      notes.recordStopBegin(id, world.elapsedMs);
      await hypervisor.resume(id);
      return {};
    case 'powerDown':
      notes.recordStopBegin(id, world.elapsedMs);
      await hypervisor.powerDown(id);
      if (world.stop?.pressedAtMs === undefined)
        recordEvent(world, parts, 'ShuttingDown', 'Signaled Graceful Shutdown');
      notes.recordPowerButton(id, clock.elapsed());
      return {};
    case 'destroy':
      parts.log.info({ domain: id, why: action.why }, 'Switching off a guest');
      await hypervisor.destroy(id);
      return hypervisor.get(id) === undefined ? {} : CHANGED;
    case 'remove':
      // The domain goes last: while it exists, an interrupted removal is repeated.
      await volumes.release(id);
      await hypervisor.remove(id);
      parts.readings.forget(id);
      parts.hotplugNotes.forget(id);
      parts.migrations.forget(id);
      if (world.pod === undefined || world.pod.metadata.deletionTimestamp !== undefined) notes.forget(id);
      return {};
    case 'reportPod':
      await reportPodView(world, action.view, parts);
      return {};
    case 'learn':
      await readDevices(id, world, parts);
      return { decideAgain: true };
    case 'reportVmi':
      await reportVmi(id, world, action.hotplug, parts);
      return {};
    case 'plug':
    case 'unplug':
    case 'clear':
    case 'verify':
    case 'setLink':
      await actOnDevice(id, action, world, parts);
      return { decideAgain: true };
    case 'migrate':
    case 'abortMigration':
    case 'takeBack':
    case 'destroyStale':
    case 'leave':
    case 'commit':
    case 'queryOutcome':
      return (await actOnMigration(id, action, world, parts)) ? CHANGED : {};
    case 'removePod':
      invariant(world.pod !== undefined, 'only an existing pod is removed');
      await removePod(world.pod, parts);
      return {};
    case 'recheck':
      return { afterMs: action.afterMs };
    default:
      return unreachable(action);
  }
}

async function start(id: string, world: DomainWorld, parts: DomainActionParts): Promise<void> {
  const { vmi } = world;
  invariant(vmi !== undefined, 'only an existing instance is started');
  const { notes, node, clock } = parts;
  const { capabilities } = node;
  const stateClaim = world.pod && stateClaimIn(world.pod);
  const { pod } = world;
  const token = pod && ((account: string) => requestPodToken(parts.client, pod, account, parts.signal));
  const outcome = await startInstance(vmi, { ...parts, pod, capabilities, stateClaim, ...(token && { token }) }).catch(
    (error: unknown) => {
      // Volumes may have been prepared already; the noted attempt makes sure that they are released when the pod is deleted.
      notes.recordWaiting(id, START_FAILED, errorMessage(error), clock.elapsed());
      throw error;
    },
  );
  switch (outcome.is) {
    case 'started':
      notes.recordStart(id);
      parts.hotplugNotes.recordClaims(id, vmi);
      for (const warning of outcome.warnings) recordWarning(vmi, parts, warning);
      return recordEvent(world, parts, 'Started', 'VirtualMachineInstance started.');
    case 'waiting':
      notes.recordWaiting(id, outcome.reason, outcome.message, clock.elapsed());
      if (REPORTED_WAITS.has(outcome.reason)) recordWarning(vmi, parts, outcome);
      return;
    default:
      notes.recordFailure(id, outcome.reason, outcome.message);
      return recordWarning(vmi, parts, outcome);
  }
}

/** Returns the addresses of the pod: those of its first interface that has any. */
function podIpsOf({ network }: DomainWorld): readonly string[] | undefined {
  return network?.interfaces.find(({ addresses }) => addresses.length > 0)?.addresses;
}

async function reportPodView(world: DomainWorld, view: PodView, parts: DomainActionParts): Promise<void> {
  const { pod } = world;
  invariant(pod !== undefined, 'only an existing pod is reported');
  const { node, clock, ownPods } = parts;
  const wasReported = pod.status?.phase === view.phase;
  const written = await reportPod(
    pod,
    buildPodStatus(pod, view, { hostIp: node.hostIp, podIps: podIpsOf(world), nowMs: clock.now() }),
    parts,
  );
  if (written !== pod) ownPods.record(written);
  if (wasReported) return;
  if (view.reason === MIGRATED_REASON) return;
  if (view.phase === 'Succeeded') recordEvent(world, parts, 'Stopped', 'The VirtualMachineInstance was shut down.');
  if (view.reason === 'GuestCrashed')
    recordEvent(world, parts, 'Stopped', 'The VirtualMachineInstance crashed.', 'Warning');
}

/** Reads the devices of a guest. A failure is only logged: DeviceReadings repeats it, and the guest is reported meanwhile. */
async function readDevices(id: string, { vmi }: DomainWorld, { readings, log }: DomainActionParts): Promise<void> {
  const { deviceHash: hash, deviceRevision: revision } = vmi?.status ?? {};
  try {
    await readings.read(id, {
      ...(hash === undefined ? {} : { hash }),
      ...(revision === undefined ? {} : { revision }),
    });
  } catch (err) {
    log.warn({ err, domain: id }, 'Cannot read the devices of a guest; it will be tried again');
  }
}

async function reportVmi(
  id: string,
  world: DomainWorld,
  hotplug: readonly HotplugState[] | undefined,
  parts: DomainActionParts,
): Promise<void> {
  const { vmi, domain, inspection, network, reading, agent } = world;
  invariant(vmi !== undefined && domain !== undefined, 'only an existing guest is reported');
  const { hotplugNotes, node, clock, ownVmis } = parts;
  const progress = progressToReport(world);
  const facts = { domain, inspection, network, reading, hotplug, agent, progress, node, nowMs: clock.now() };
  const written = await writeVmiStatus(vmi, facts, parts);
  if (written !== undefined) {
    ownVmis.record(written);
    recordIoError(vmi, written, parts);
  }
  hotplugNotes.forgetCleared(id);
}

/** Records an Event if the status newly reports that an error of a disk has paused the guest. */
function recordIoError(
  before: Stored<VirtualMachineInstance>,
  { status }: VirtualMachineInstance,
  parts: DomainActionParts,
): void {
  const paused = findCondition(status?.conditions, 'Paused');
  if (paused?.reason !== PAUSED_IO_ERROR) return;
  const { message = '' } = paused;
  if (findCondition(before.status?.conditions, 'Paused')?.message === message) return;
  recordWarning(before, parts, { reason: IO_ERROR_EVENT, message });
}

function recordEvent(
  { vmi }: DomainWorld,
  { events }: DomainActionParts,
  reason: string,
  message: string,
  type: 'Normal' | 'Warning' = 'Normal',
): void {
  if (vmi !== undefined) events.record(vmi, { type, reason, message });
}

function recordWarning(
  vmi: Stored<VirtualMachineInstance>,
  { events }: DomainActionParts,
  { reason, message }: { reason: string; message: string },
): void {
  events.record(vmi, { type: 'Warning', reason, message });
}
