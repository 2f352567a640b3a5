/** The verbs that start, stop and pause machines: start, stop, restart, pause, unpause, reset and soft-reboot. */
import type { ApiConnection } from '#cli/connection/api-connection.ts';
import { vmPath, verbPath } from '#cli/connection/verb-path.ts';
import { defineCommand, type VirtctlCommand } from '#cli/command.ts';
import { dryRunFlag, dryRunOption } from '#cli/dry-run.ts';
import { judgeStart, judgeStop, readVmView, type PowerJudge } from '#cli/wait/power-state.ts';
import { GUEST_TIMEOUT, waitFlags, waitLimitMs, type WaitFlagValues } from '#cli/wait/wait-flags.ts';
import { waitUntil } from '#cli/wait/wait-until.ts';
import { isApiError } from '#kube/api-error.ts';
import { isRecord } from '#kube/meta.ts';
import { CommandError, explainFailure, UsageError } from '#lib/command-line/command-error.ts';
import { integerFlag, switchFlag, type FlagTable, type FlagValues } from '#lib/command-line/flag.ts';

/** A verb of a VirtualMachine. */
interface VmVerb<Table extends FlagTable> {
  readonly name: 'start' | 'stop' | 'restart';
  /** The state that --wait waits for: "VM db is <goal>". */
  readonly goal: 'running' | 'running again' | 'stopped';
  readonly flags: Table;
  /** Returns the body of the request. Throws UsageError. */
  request(flags: FlagValues<Table>): object;
  /** Returns the function that decides whether the goal is reached. */
  judge(flags: FlagValues<Table>): PowerJudge;
}

function defineVmVerb<Table extends FlagTable>(verb: VmVerb<Table>): VirtctlCommand {
  const { name, goal, flags, request, judge } = verb;
  const title = name[0]!.toUpperCase() + name.slice(1);
  return defineCommand({
    name,
    usage: '(VM)',
    summary: `${title} a virtual machine.`,
    example: [
      `  # ${title} a virtual machine called 'myvm':`,
      `  virtctl ${name} myvm`,
      '',
      `  # ${title} it, and wait at most two minutes until it is ${goal}:`,
      `  virtctl ${name} myvm --wait --timeout=2m`,
    ].join('\n'),
    flags: { ...flags, ...waitFlags(`the virtual machine is ${goal}`, GUEST_TIMEOUT), dryRun: dryRunFlag },
    args: 1,
    async run({ args: [vm = ''], flags: given, connect, print, status }) {
      const { dryRun, ...waiting } = given as WaitFlagValues & { readonly dryRun: boolean };
      const body = request(given as FlagValues<Table>);
      const limitMs = waitLimitMs(waiting, GUEST_TIMEOUT);
      const api = await connect();
      const options = dryRunOption(dryRun, print);
      const path = verbPath('virtualmachines', api.namespace, vm, name);
      const before = limitMs === undefined || dryRun ? undefined : await readVmView(api, vm);
      await explainFailure(`Cannot ${name} VM ${vm}: `, api.put(path, { ...body, ...options }));
      print(`VM ${vm} was scheduled to ${name}`);
      if (limitMs === undefined || before === undefined) return;
      const reached = judge(given as FlagValues<Table>);
      const wait = {
        limitMs,
        problem: `Cannot confirm that VM ${vm} is ${goal}`,
        advice: `the request remains in effect, see kubectl describe vm ${vm}`,
        read: async () => reached(vm, before, await readVmView(api, vm)),
      };
      print(await waitUntil(wait, status));
    },
  });
}

/** The flags of stop and restart, which must be used together. */
const forceFlags = {
  force: switchFlag({
    name: 'force',
    help: '--force=false: Only used when grace-period=0. If true, immediately remove VMI pod from API and bypass graceful deletion. Note that immediate deletion of some resources may result in inconsistency or data loss.',
  }),
  gracePeriod: integerFlag(
    {
      name: 'grace-period',
      help: '--grace-period=-1: Period of time in seconds given to the VMI to terminate gracefully. Can only be set to 0 when --force is true (force deletion). Currently only setting 0 is supported.',
    },
    undefined,
  ),
};

/** Returns the requested grace period; undefined for the one of the VM. Throws UsageError. */
function forcedGrace({ force, gracePeriod }: FlagValues<typeof forceFlags>): number | undefined {
  if ((gracePeriod !== undefined) !== force) {
    throw new UsageError('Must both use --force=true and set --grace-period.');
  }
  return gracePeriod;
}

/** A verb of a VirtualMachineInstance. */
interface InstanceVerb {
  /** The verb of the API. */
  readonly verb: 'pause' | 'unpause' | 'softreboot' | 'reset';
  /** The verb in messages. */
  readonly word: 'pause' | 'unpause' | 'soft-reboot' | 'reset';
  /** The beginning of the summary. */
  readonly title: string;
}

function defineInstanceVerb(verb: InstanceVerb): VirtctlCommand {
  const { word, title } = verb;
  return defineCommand({
    name: word,
    usage: '(VMI)',
    summary: `${title} a virtual machine instance.`,
    example: `  # ${title} a virtualmachineinstance called 'myvmi':\n  virtctl ${word} myvmi`,
    flags: {},
    args: 1,
    async run({ args: [name = ''], connect, print }) {
      print(await sendInstanceVerb(await connect(), verb, name, {}));
    },
  });
}

/** Defines pause or unpause, which name the instance directly or by its VM. */
function definePauseVerb(verb: InstanceVerb): VirtctlCommand {
  const { word, title } = verb;
  return defineCommand({
    name: word,
    usage: 'vm|vmi (VM)|(VMI)',
    summary: `${title} a virtual machine.`,
    example: `  # ${title} a virtual machine called 'myvm':\n  virtctl ${word} vm myvm`,
    flags: { dryRun: dryRunFlag },
    args: 2,
    completes: [['vm', 'vmi'], 'vm'],
    async run({ args: [kind = '', target = ''], flags, connect, print }) {
      const send = parseKindWord(kind) === 'vm' ? sendInstanceVerbOfVm : sendInstanceVerb;
      print(await send(await connect(), verb, target, dryRunOption(flags.dryRun, print)));
    },
  });
}

/** Parses the first argument of pause and unpause. Throws UsageError. */
function parseKindWord(word: string): 'vm' | 'vmi' {
  const kind = word.toLowerCase();
  if (/^(?:vms?|virtualmachines?)$/.test(kind)) return 'vm';
  if (/^(?:vmis?|virtualmachineinstances?)$/.test(kind)) return 'vmi';
  throw new UsageError(`unsupported resource type ${JSON.stringify(word)}; expected vm or vmi`);
}

/** Sends the verb and returns the message of success. Throws CommandError. */
async function sendInstanceVerb(
  api: ApiConnection,
  { verb, word }: InstanceVerb,
  name: string,
  body: object,
): Promise<string> {
  const path = verbPath('virtualmachineinstances', api.namespace, name, verb);
  await explainFailure(`Cannot ${word} VMI ${name}: `, api.put(path, body));
  return `VMI ${name} was scheduled to ${word}`;
}

/** Like sendInstanceVerb, for the instance of a VM. The error explains why there is no instance. */
async function sendInstanceVerbOfVm(
  api: ApiConnection,
  verb: InstanceVerb,
  name: string,
  body: object,
): Promise<string> {
  const path = vmPath('virtualmachines', api.namespace, name);
  const vm = await explainFailure(`Cannot ${verb.word} VM ${name}: `, api.get(path));
  try {
    return await sendInstanceVerb(api, verb, name, body);
  } catch (error) {
    if (!(error instanceof CommandError) || !isApiError(error.cause, 'NotFound')) throw error;
    const why = isHalted(vm)
      ? `it is not set to run; start it with virtctl start ${name}`
      : `it has no instance; see kubectl describe vm ${name}`;
    throw new CommandError(`Cannot ${verb.word} VM ${name}: ${why}`, { cause: error.cause });
  }
}

function isHalted(vm: unknown): boolean {
  const spec = isRecord(vm) && isRecord(vm['spec']) ? vm['spec'] : {};
  return spec['runStrategy'] === 'Halted' || spec['running'] === false;
}

export const powerCommands: readonly VirtctlCommand[] = [
  defineVmVerb({
    name: 'start',
    goal: 'running',
    flags: {
      paused: switchFlag({
        name: 'paused',
        help: '--paused=false: If set to true, start virtual machine in paused state',
      }),
    },
    request: ({ paused }) => (paused ? { paused } : {}),
    judge: ({ paused }) => judgeStart(paused),
  }),
  defineVmVerb({
    name: 'stop',
    goal: 'stopped',
    flags: forceFlags,
    judge: () => judgeStop,
    request(flags) {
      const gracePeriod = forcedGrace(flags);
      return gracePeriod === undefined ? {} : { gracePeriod };
    },
  }),
  defineVmVerb({
    name: 'restart',
    goal: 'running again',
    flags: forceFlags,
    judge: () => judgeStart(false),
    request(flags) {
      const gracePeriodSeconds = forcedGrace(flags);
      return gracePeriodSeconds === undefined ? {} : { gracePeriodSeconds };
    },
  }),
  definePauseVerb({ verb: 'pause', word: 'pause', title: 'Pause' }),
  definePauseVerb({ verb: 'unpause', word: 'unpause', title: 'Unpause' }),
  defineInstanceVerb({ verb: 'reset', word: 'reset', title: 'Reset' }),
  defineInstanceVerb({ verb: 'softreboot', word: 'soft-reboot', title: 'Soft reboot' }),
];
