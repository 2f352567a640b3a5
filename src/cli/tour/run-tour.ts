/**
 * `selfsame tour`: takes a real VM through every operation that could change it. After each step, the guest reports what it
 * sees, and the report is compared with the previous one.
 *
 *   running or temporary plane ──► new namespace ──► steps, each compared ──► verdict
 *                                        └──────── cleanup, also after Ctrl-C ◄────┘
 */
import { openConnection, type ConnectionOptions } from '#cli/connection/api-connection.ts';
import { CommandError } from '#lib/command-line/command-error.ts';
import { errorMessage } from '#lib/error-message.ts';
import { clearNamespace, clearTours, NAMESPACE_PREFIX, tourProcessAnnotations } from '#cli/tour/clear-tours.ts';
import { compare, identityView } from '#cli/tour/comparison.ts';
import { TourDisplay, type TourStepResult } from '#cli/tour/display.ts';
import { TourGuest } from '#cli/tour/guest.ts';
import type { GuestReport } from '#cli/tour/guest-report.ts';
import { startOwnPlane } from '#cli/tour/own-plane.ts';
import { chooseMachineTypes } from '#cli/tour/machine-types.ts';
import { buildSteps, type Scene, type TourStep } from '#cli/tour/steps.ts';
import { TourError, TourApi } from '#cli/tour/tour-api.ts';
import { newEdits, VM_NAME } from '#cli/tour/tour-vm.ts';
import type { ClusterAccess } from '#client/kubeconfig.ts';
import { NAMESPACES, NODES } from '#kube/core-kinds.ts';
import type { Clock } from '#lib/clock.ts';
import { generateName } from '#lib/ids.ts';
import type { StatusOptions, StatusStream } from '#lib/terminal/status-output.ts';
import { VERSION } from '#lib/version.ts';

export interface TourOptions extends StatusOptions {
  /** A running plane; undefined to start a temporary one. */
  readonly access: ClusterAccess | undefined;
  /** The command that starts this program. */
  readonly program: readonly [string, ...string[]];
  /** Reads the kubeconfig of the temporary plane. */
  loadAccess(path: string): ClusterAccess;
  readonly readFile: ConnectionOptions['readFile'];
  readonly screen: StatusStream;
  /** Aborted at Ctrl-C. */
  readonly signal: AbortSignal;
}

const USER_AGENT = `selfsame-tour/${VERSION}`;

/** Runs the tour and reports whether the VM kept its identity. Rejects if the tour cannot finish. */
export async function runTour(options: TourOptions): Promise<boolean> {
  const { screen, signal } = options;
  const display = new TourDisplay(screen, options);
  const left = options.access === undefined ? await clearTours() : [];
  for (const line of left) display.print(`Left by a killed tour: ${line}`);
  const plane =
    options.access === undefined
      ? await display.showDuring('Starting a temporary plane', () => startOwnPlane(options.program))
      : undefined;
  try {
    signal.throwIfAborted();
    const access = plane === undefined ? options.access! : options.loadAccess(plane.kubeconfigPath);
    return await runInNamespace(options, access, display);
  } finally {
    if (plane !== undefined) await display.showDuring('Stopping the plane', () => plane.stop());
    if (signal.aborted) display.print('The tour was stopped; nothing is left behind.');
  }
}

async function runInNamespace(options: TourOptions, access: ClusterAccess, display: TourDisplay): Promise<boolean> {
  const { clock, readFile, signal } = options;
  const connection = openConnection({ access, userAgent: USER_AGENT, clock, readFile });
  const parts = { connection, namespace: generateName(NAMESPACE_PREFIX), clock, onWait: display.waitsFor };
  try {
    const api = new TourApi({ ...parts, signal });
    const machines = chooseMachineTypes(await api.list(NODES));
    if ('problem' in machines) throw new TourError(machines.problem);
    display.print(`Using namespace ${api.namespace} on ${access.server}`);
    try {
      await api.create(NAMESPACES, { metadata: { name: api.namespace, annotations: tourProcessAnnotations() } });
      return await runSteps(
        buildSteps(machines, newEdits()),
        { api, guest: new TourGuest(api, VM_NAME) },
        { display, clock },
      );
    } finally {
      await display.showDuring('Cleaning up', () => clearNamespace(parts));
    }
  } finally {
    connection.close();
  }
}

/** Runs all steps and compares the guest's reports. Returns whether it stayed the selfsame machine. */
export async function runSteps(
  steps: readonly TourStep[],
  { api, guest }: Omit<Scene, 'before'>,
  { display, clock }: { readonly display: TourDisplay; readonly clock: Clock },
): Promise<boolean> {
  let before: GuestReport | undefined;
  const results: TourStepResult[] = [];
  for (const [index, step] of steps.entries()) {
    const beganAt = clock.elapsed();
    const head = display.showStep(index + 1, steps.length, step);
    const {
      report,
      requested = {},
      notes,
      problem,
    } = await display.showDuring(head, () => step.run({ api, guest, before }));
    const rows = before === undefined ? [] : compare(identityView(before), identityView(report), requested);
    if (before === undefined) display.showIdentity(identityView(report));
    else display.showOutcome(rows, notes);
    results.push({ step, rows, problem, tookMs: clock.elapsed() - beganAt });
    before = report;
  }
  return display.showVerdict(results);
}

/** `selfsame tour --clear`: removes what killed tours left on this machine and on the running plane. */
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

/** Returns the error of a tour that cannot continue. */
export function tourError(cause: unknown): CommandError {
  return new CommandError(`Cannot continue the tour: ${errorMessage(cause)}`, { cause });
}
