/**
 * `selfsame tour`: one real machine through everything that could change it. After each station the guest itself is asked,
 * and what it sees is compared with what it saw before.
 *
 *   a plane that runs, or one of its own ──► a namespace of its own ──► STEPS, each compared ──► verdict
 *                                                     └──────── all of it is cleared away, also after Ctrl-C ◄┘
 */
import { openConnection, type ConnectionOptions } from '#cli/api-connection.ts';
import { messageOf } from '#cli/message-of.ts';
import { clearNamespace, clearTours, NAMESPACE_PREFIX, walkerMark } from '#cli/tour/clear-tours.ts';
import { compare, viewOf } from '#cli/tour/comparison.ts';
import { TourDisplay, type Screen, type Walked } from '#cli/tour/display.ts';
import { TourGuest } from '#cli/tour/guest.ts';
import type { GuestReport } from '#cli/tour/guest-report.ts';
import { startOwnPlane } from '#cli/tour/own-plane.ts';
import { machinesFor } from '#cli/tour/machine-types.ts';
import { stepsWith, type Scene, type Step } from '#cli/tour/steps.ts';
import { TourApi } from '#cli/tour/tour-api.ts';
import { TourError } from '#cli/tour/tour-error.ts';
import { newEdits, VM_NAME } from '#cli/tour/tour-vm.ts';
import type { ClusterAccess } from '#client/kubeconfig.ts';
import { NAMESPACES, NODES } from '#kube/core-kinds.ts';
import type { Clock } from '#lib/clock.ts';
import { generatedName } from '#lib/ids.ts';
import { VERSION } from '#lib/version.ts';

export interface TourOptions {
  /** A plane that runs already; without one the tour starts its own. */
  readonly access: ClusterAccess | undefined;
  /** How this program is started again. */
  readonly program: readonly [string, ...string[]];
  /** Reads the kubeconfig of a plane of our own. */
  loadAccess(path: string): ClusterAccess;
  readonly readFile: ConnectionOptions['readFile'];
  readonly screen: Screen;
  readonly clock: Clock;
  /** Ctrl-C. */
  readonly signal: AbortSignal;
}

const USER_AGENT = `selfsame-tour/${VERSION}`;

/** Runs the tour and reports whether the VM kept its identity. Rejects if the tour cannot finish. */
export async function runTour(options: TourOptions): Promise<boolean> {
  const { screen, clock, signal } = options;
  const display = new TourDisplay(screen, clock);
  const left = options.access === undefined ? await clearTours() : [];
  for (const line of left) display.say(`Left by a killed tour: ${line}`);
  const plane =
    options.access === undefined
      ? await display.during('Starting a temporary plane', () => startOwnPlane(options.program))
      : undefined;
  try {
    signal.throwIfAborted();
    const access = plane === undefined ? options.access! : options.loadAccess(plane.kubeconfigPath);
    return await inNamespace(options, access, display);
  } finally {
    if (plane !== undefined) await display.during('Stopping the plane', () => plane.stop());
    if (signal.aborted) display.say('The tour was stopped; nothing is left behind.');
  }
}

async function inNamespace(options: TourOptions, access: ClusterAccess, display: TourDisplay): Promise<boolean> {
  const { clock, readFile, signal } = options;
  const connection = openConnection({ access, userAgent: USER_AGENT, clock, readFile });
  const parts = { connection, namespace: generatedName(NAMESPACE_PREFIX), clock, onWait: display.waitsFor };
  try {
    const api = new TourApi({ ...parts, signal });
    const machines = machinesFor(await api.list(NODES));
    if ('problem' in machines) throw new TourError(machines.problem);
    display.say(`Using namespace ${api.namespace} on ${access.server}`);
    try {
      await api.create(NAMESPACES, { metadata: { name: api.namespace, annotations: walkerMark() } });
      return await walk(
        stepsWith(machines, newEdits()),
        { api, guest: new TourGuest(api, VM_NAME) },
        { display, clock },
      );
    } finally {
      await display.during('Cleaning up', () => clearNamespace(parts));
    }
  } finally {
    connection.close();
  }
}

/** All steps, one after the other; the guest is asked after each. Whether it stayed the selfsame machine. */
export async function walk(
  steps: readonly Step[],
  { api, guest }: Omit<Scene, 'before'>,
  { display, clock }: { readonly display: TourDisplay; readonly clock: Clock },
): Promise<boolean> {
  let before: GuestReport | undefined;
  const walked: Walked[] = [];
  for (const [index, step] of steps.entries()) {
    const beganAt = clock.elapsed();
    const head = display.step(index + 1, steps.length, step);
    const { report, decided = {}, said, problem } = await display.during(head, () => step.run({ api, guest, before }));
    const rows = before === undefined ? [] : compare(viewOf(before), viewOf(report), decided);
    if (before === undefined) display.card(viewOf(report));
    else display.outcome(rows, said);
    walked.push({ step, rows, problem, tookMs: clock.elapsed() - beganAt });
    before = report;
  }
  return display.verdict(walked);
}

/** `selfsame tour --clear`: what is left of tours that were killed, here and on the plane that runs. */
export async function runClear(options: Omit<TourOptions, 'program' | 'loadAccess' | 'signal'>): Promise<void> {
  const { access, clock, readFile, screen } = options;
  const connection = access && openConnection({ access, userAgent: USER_AGENT, clock, readFile });
  try {
    const removed = await clearTours(connection && { connection, clock });
    screen.write(removed.length === 0 ? 'no killed tour left anything behind\n' : `${removed.join('\n')}\n`);
  } finally {
    connection?.close();
  }
}

/** Returns the message for a tour that cannot continue. */
export function tourFault(error: unknown): string {
  return `Cannot continue the tour: ${messageOf(error)}`;
}
