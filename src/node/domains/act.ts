/** Carries out what decide-domain.ts asks for. It leaves nothing to choose: each action is one call, and what it means. */
import { MIGRATED_REASON } from '#api/names.ts';
import { stateClaimIn } from '#api/persistent-state.ts';
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import type { Client } from '#client/client.ts';
import type { Pod } from '#kube/core-kinds.ts';
import type { Stored } from '#kube/meta.ts';
import { invariant, unreachable } from '#lib/invariant.ts';
import type { Clock } from '#lib/clock.ts';
import type { Log } from '#lib/log.ts';
import { actOnDevice } from '#node/domains/act-on-device.ts';
import { actOnMove } from '#node/domains/act-on-move.ts';
import type { HotplugState } from '#node/domains/decide-hotplug.ts';
import type { DeviceBook } from '#node/domains/device-book.ts';
import type { DomainAction } from '#node/domains/domain-action.ts';
import type { DomainNotes } from '#node/domains/domain-notes.ts';
import type { DomainWorld, NodeFacts } from '#node/domains/domain-world.ts';
import type { HotplugNotes } from '#node/domains/hotplug-notes.ts';
import { startDomain, type GuestKernel } from '#node/domains/start-domain.ts';
import { writeVmiStatus } from '#node/domains/write-vmi-status.ts';
import { migrationProgress } from '#node/domains/decide-outgoing.ts';
import type { Hypervisor } from '#node/hypervisor/hypervisor.ts';
import type { Migrations } from '#node/migration/migrations.ts';
import type { OwnWrites } from '#node/pods/own-writes.ts';
import { podStatus, type PodView } from '#node/pods/pod-status.ts';
import { removePod, reportPod } from '#node/pods/pod-writer.ts';
import type { Volumes } from '#node/volumes-port.ts';
import type { EventSink } from '#runtime/events.ts';
import { podToken } from '#node/pods/pod-token.ts';

export interface ActParts {
  readonly client: Client;
  readonly hypervisor: Hypervisor;
  readonly volumes: Volumes;
  readonly guest: GuestKernel | undefined;
  readonly node: NodeFacts;
  readonly notes: DomainNotes;
  readonly hotplugNotes: HotplugNotes;
  readonly book: DeviceBook;
  readonly migrations: Migrations;
  readonly ownPods: OwnWrites<Pod>;
  readonly ownVmis: OwnWrites<VirtualMachineInstance>;
  readonly events: EventSink;
  readonly clock: Clock;
  readonly log: Log;
  readonly signal: AbortSignal;
}

/**
 * `changed`: the domain is not what the decision was made on. `again`: what is left of the decision still holds, and then
 * there is more to decide. Otherwise when to look again, if at all.
 */
export type ActResult = { readonly changed: true } | { readonly again?: true; readonly afterMs?: number };

const CHANGED: ActResult = { changed: true };

export async function act(id: string, action: DomainAction, world: DomainWorld, parts: ActParts): Promise<ActResult> {
  const { hypervisor, volumes, notes, clock } = parts;
  switch (action.do) {
    case 'start':
      await start(id, world, parts);
      return CHANGED;
    case 'resume':
      // Its time runs also where it cannot: else a QEMU that hangs would never be switched off.
      notes.stopBegins(id, world.elapsedMs);
      await hypervisor.resume(id);
      return {};
    case 'powerDown':
      notes.stopBegins(id, world.elapsedMs);
      await hypervisor.powerDown(id);
      if (world.stopping?.pressedAtMs === undefined) tell(world, parts, 'ShuttingDown', 'Signaled Graceful Shutdown');
      notes.pressed(id, clock.elapsed());
      return {};
    case 'destroy':
      parts.log.info({ domain: id, why: action.why }, 'switching off a guest');
      await hypervisor.destroy(id);
      return hypervisor.get(id) === undefined ? {} : CHANGED;
    case 'remove':
      // In this order: as long as the domain is known, what fails or is cut off here is done again.
      await volumes.release(id);
      await hypervisor.remove(id);
      parts.book.forget(id);
      parts.hotplugNotes.forget(id);
      parts.migrations.forget(id);
      if (world.pod === undefined || world.pod.metadata.deletionTimestamp !== undefined) notes.forget(id);
      return {};
    case 'reportPod':
      await report(world, action.view, parts);
      return {};
    case 'learn':
      await learn(id, world, parts);
      return { again: true };
    case 'reportVmi':
      await reportVmi(id, world, action.hotplug, parts);
      return {};
    case 'plug':
    case 'unplug':
    case 'clear':
    case 'verify':
    case 'setLink':
      await actOnDevice(id, action, world, parts);
      return { again: true };
    case 'migrate':
    case 'abortMigration':
    case 'takeBack':
    case 'giveUp':
    case 'leave':
    case 'commit':
    case 'askOutcome':
      return (await actOnMove(id, action, world, parts)) ? CHANGED : {};
    case 'removePod':
      invariant(world.pod !== undefined, 'a pod that is removed is there');
      await removePod(world.pod, parts);
      return {};
    case 'lookAgain':
      return { afterMs: action.afterMs };
    default:
      return unreachable(action);
  }
}

async function start(id: string, world: DomainWorld, parts: ActParts): Promise<void> {
  const { vmi } = world;
  invariant(vmi !== undefined, 'what is started is an instance');
  const { notes, node, clock } = parts;
  const { capabilities } = node;
  const stateClaim = world.pod && stateClaimIn(world.pod);
  const { pod } = world;
  const token = pod && ((account: string) => podToken(parts.client, pod, account, parts.signal));
  const outcome = await startDomain(vmi, { ...parts, capabilities, stateClaim, ...(token && { token }) }).catch(
    (error: unknown) => {
      // Volumes may have been made already: what was tried is cleared away when the pod goes.
      notes.waiting(id, 'StartFailed', error instanceof Error ? error.message : String(error), clock.elapsed());
      throw error;
    },
  );
  switch (outcome.is) {
    case 'started':
      notes.started(id);
      for (const [device, claim] of outcome.claims) parts.hotplugNotes.standsOn(id, device, claim);
      for (const note of outcome.notes) warn(vmi, parts, note);
      return tell(world, parts, 'Started', 'VirtualMachineInstance started.');
    case 'waiting':
      notes.waiting(id, outcome.reason, outcome.message, clock.elapsed());
      if (outcome.reason === 'StartFailed') warn(vmi, parts, outcome);
      return;
    default:
      notes.failed(id, outcome.reason, outcome.message);
      return warn(vmi, parts, outcome);
  }
}

async function report(world: DomainWorld, view: PodView, parts: ActParts): Promise<void> {
  const { pod } = world;
  invariant(pod !== undefined, 'a pod that is reported is there');
  const { node, clock, ownPods } = parts;
  const wasFinal = pod.status?.phase === view.phase;
  const written = await reportPod(pod, podStatus(pod, view, { hostIp: node.hostIp, nowMs: clock.now() }), parts);
  if (written !== pod) ownPods.wrote(written);
  if (wasFinal) return;
  if (view.reason === MIGRATED_REASON) return;
  if (view.phase === 'Succeeded') tell(world, parts, 'Stopped', 'The VirtualMachineInstance was shut down.');
  if (view.reason === 'GuestCrashed') tell(world, parts, 'Stopped', 'The VirtualMachineInstance crashed.', 'Warning');
}

/** What the hypervisor cannot tell now is asked again: the book says when, and the guest is reported meanwhile. */
async function learn(id: string, { vmi }: DomainWorld, { book, log }: ActParts): Promise<void> {
  const { deviceHash: hash, deviceRevision: revision } = vmi?.status ?? {};
  try {
    await book.read(id, { ...(hash === undefined ? {} : { hash }), ...(revision === undefined ? {} : { revision }) });
  } catch (err) {
    log.warn({ err, domain: id }, 'Cannot read the devices of a guest; trying again');
  }
}

async function reportVmi(
  id: string,
  world: DomainWorld,
  hotplug: readonly HotplugState[] | undefined,
  parts: ActParts,
): Promise<void> {
  const { vmi, domain, inspection, reading, agent } = world;
  invariant(vmi !== undefined && domain !== undefined, 'a guest that is reported is there');
  const { hotplugNotes, node, clock, ownVmis } = parts;
  const progress = migrationProgress(world);
  const facts = { domain, inspection, reading, hotplug, agent, progress, node, nowMs: clock.now() };
  const written = await writeVmiStatus(vmi, facts, parts);
  if (written !== undefined) ownVmis.wrote(written);
  hotplugNotes.told(id);
}

function tell(
  { vmi }: DomainWorld,
  { events }: ActParts,
  reason: string,
  message: string,
  type: 'Normal' | 'Warning' = 'Normal',
): void {
  if (vmi !== undefined) events.record(vmi, { type, reason, message });
}

function warn(
  vmi: Stored<VirtualMachineInstance>,
  { events }: ActParts,
  { reason, message }: { reason: string; message: string },
): void {
  events.record(vmi, { type: 'Warning', reason, message });
}
