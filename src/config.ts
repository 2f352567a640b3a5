/**
 * The command line as values: argv and environment in, a typed Config or a UsageError out. Pure; main.ts acts on it.
 *
 * A new flag is one entry of a flag table, a new command one entry of `commands` and of the Config union. Every flag
 * `--some-name` can also be given as SELFSAME_SOME_NAME; the command line wins.
 */
import { isIP } from 'node:net';
import { join } from 'node:path';
import { HOST_VERBS } from '#api/host-api.ts';
import { AUDIT_FLAGS, AUDIT_USAGE } from '#cli/audit/audit-query.ts';
import { completeWords, completionLines } from '#cli/completion/complete-words.ts';
import { completionScript, SHELLS } from '#cli/completion/completion-script.ts';
import { parseFlags, type Environment, type ProgramFlag } from '#cli/selfsame/program-flags.ts';
import type { ProgramFlags, ProgramValues, UsageError } from '#cli/selfsame/program-flags.ts';
import { programHelp, programOverview, programTree, TRANSITION_NOTES } from '#cli/selfsame/program-help.ts';
import { SHELL_WORDS, type ProgramCommand } from '#cli/selfsame/program-help.ts';
import { auditFlags } from '#engine/audit/audit-options.ts';
import type { LogLevel } from '#lib/log.ts';
import { suggestion } from '#lib/nearest.ts';

const PROJECT_ROOT = join(import.meta.dirname, '..');
const LOG_LEVELS: readonly LogLevel[] = ['debug', 'info', 'warn', 'error', 'silent'];
const MAX_PORT = 65_535;
/** On one machine; more belong to a cluster. */
const MAX_NODES = 100;
const NODE_NAME = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/;

type Flag<T> = ProgramFlag<T>;

const flag = <T>(options: Flag<T>): Flag<T> => options;

const logLevel = flag<LogLevel>({
  name: 'log-level',
  value: 'LEVEL',
  help: LOG_LEVELS.join(', '),
  fallback: 'warn',
  completes: LOG_LEVELS,
  parse: wordOf(LOG_LEVELS),
});

const HYPERVISORS = ['qemu', 'fake'] as const;
const ACCELERATORS = ['auto', 'kvm', 'tcg'] as const;

/** How guests are run. */
const guestFlags = {
  hypervisor: flag<(typeof HYPERVISORS)[number]>({
    name: 'hypervisor',
    value: 'NAME',
    help: 'qemu runs real guests, fake simulates them by the thousands',
    fallback: 'qemu',
    completes: HYPERVISORS,
    parse: wordOf(HYPERVISORS),
  }),
  accel: flag<(typeof ACCELERATORS)[number]>({
    name: 'accel',
    value: 'NAME',
    help: 'auto takes kvm where it works, else tcg (software emulation)',
    fallback: 'auto',
    completes: ACCELERATORS,
    parse: wordOf(ACCELERATORS),
  }),
};

const engineFlags = {
  dataDir: flag<string>({
    name: 'data-dir',
    value: 'DIR',
    help: 'where all state lives; made (mode 0700) when missing',
    fallback: join(PROJECT_ROOT, '.selfsame'),
    fallbackText: '.selfsame in the folder of the program',
    completes: 'file',
    parse: nonEmpty,
  }),
  host: flag<string>({
    name: 'host',
    value: 'ADDRESS',
    help: 'IP address (or localhost) to listen on',
    fallback: '127.0.0.1',
    parse: (text) =>
      isIP(text) !== 0 || text === 'localhost' ? { ok: text } : { mustBe: 'an IP address or localhost' },
  }),
  port: flag<number>({
    name: 'port',
    value: 'PORT',
    help: 'TCP port to listen on; 0 takes a free one',
    fallback: 6443,
    parse(text) {
      const port = /^\d{1,5}$/.test(text) ? Number(text) : Number.NaN;
      return port <= MAX_PORT ? { ok: port } : { mustBe: `a port number from 0 to ${MAX_PORT}` };
    },
  }),
  tokenAuthFile: flag<string | undefined>({
    name: 'token-auth-file',
    value: 'FILE',
    help: 'bearer tokens, one token,user,uid,"group1,group2" a line',
    fallback: undefined,
    fallbackText: 'none',
    completes: 'file',
    parse: nonEmpty,
  }),
  ...auditFlags,
  logLevel,
};

const upFlags = {
  ...engineFlags,
  nodes: flag<number>({
    name: 'nodes',
    value: 'COUNT',
    help: 'how many nodes run VMs on this machine',
    fallback: 2,
    parse(text) {
      const count = /^\d{1,3}$/.test(text) ? Number(text) : Number.NaN;
      return count <= MAX_NODES ? { ok: count } : { mustBe: `a number from 0 to ${MAX_NODES}` };
    },
  }),
  ...guestFlags,
};

const nodeFlags = {
  name: flag<string>({
    name: 'name',
    value: 'NAME',
    help: 'the name of the node',
    fallback: 'node-1',
    parse: (text) => (NODE_NAME.test(text) ? { ok: text } : { mustBe: 'a lower-case name of at most 63 characters' }),
  }),
  dataDir: flag<string>({
    name: 'data-dir',
    value: 'DIR',
    help: 'where the guests and local volumes of the node live, with its kubeconfig and pki/',
    fallback: join(PROJECT_ROOT, '.selfsame/nodes/node-1'),
    fallbackText: '.selfsame/nodes/node-1 in the folder of the program',
    completes: 'file',
    parse: nonEmpty,
  }),
  sharedDir: flag<string>({
    name: 'shared-dir',
    value: 'DIR',
    help: 'where volumes lie that every node reaches',
    fallback: join(PROJECT_ROOT, '.selfsame/shared'),
    fallbackText: '.selfsame/shared in the folder of the program',
    completes: 'file',
    parse: nonEmpty,
  }),
  ...guestFlags,
  logLevel,
};

const hostFlags = {
  node: flag<string | undefined>({
    name: 'node',
    value: 'NAME',
    help: 'which node, where there are several',
    fallback: undefined,
    fallbackText: 'the only one',
    parse: nodeFlags.name.parse,
  }),
  dataDir: engineFlags.dataDir,
};

const auditReaderFlags = { dataDir: engineFlags.dataDir };

const OUTPUTS = ['text', 'json'] as const;

const doctorFlags = {
  dataDir: engineFlags.dataDir,
  host: engineFlags.host,
  port: engineFlags.port,
  output: flag<(typeof OUTPUTS)[number]>({
    name: 'output',
    value: 'FORMAT',
    help: 'text for people, json for programs',
    fallback: 'text',
    completes: OUTPUTS,
    parse: wordOf(OUTPUTS),
  }),
};

const tourFlags = {
  kubeconfig: flag<string | undefined>({
    name: 'kubeconfig',
    value: 'FILE',
    help: 'a plane that runs already',
    fallback: undefined,
    fallbackText: 'that of the data directory where it runs, else a plane of its own',
    completes: 'file',
    parse: nonEmpty,
  }),
  dataDir: engineFlags.dataDir,
};

const transitionFlags = {
  // Its log is what people read to follow the Job.
  logLevel: flag<LogLevel>({ ...logLevel, fallback: 'info' }),
};

type Values<Table extends ProgramFlags> = ProgramValues<Table>;
export type EngineOptions = Values<typeof engineFlags>;
export type UpOptions = Values<typeof upFlags>;
export type NodeOptions = Values<typeof nodeFlags>;
export type HostOptions = Values<typeof hostFlags> & {
  /** The verb and what follows. */
  readonly words: readonly string[];
};

export type AuditReaderOptions = Values<typeof auditReaderFlags> & {
  /** All flags, also that of another data directory. */
  readonly words: readonly string[];
};

export type TourOptions = Values<typeof tourFlags>;
export type DoctorOptions = Values<typeof doctorFlags>;

export type TransitionProgramOptions = Values<typeof transitionFlags> & {
  /** Read by the program itself, since what is wrong in it is the Job's fault and not that of a caller. */
  readonly env: Environment;
};

export type Config =
  | { readonly command: 'up'; readonly options: UpOptions }
  | { readonly command: 'engine'; readonly options: EngineOptions }
  | { readonly command: 'node'; readonly options: NodeOptions }
  | { readonly command: 'host'; readonly options: HostOptions }
  | { readonly command: 'audit'; readonly options: AuditReaderOptions }
  | { readonly command: 'tour'; readonly options: TourOptions }
  | { readonly command: 'doctor'; readonly options: DoctorOptions }
  | { readonly command: 'update-machine-types'; readonly options: TransitionProgramOptions }
  | { readonly command: 'version' }
  | { readonly command: 'help'; readonly text: string };

interface Command extends ProgramCommand {
  parse(args: readonly string[], env: Environment): Config | UsageError;
}

const commands: Readonly<Record<Config['command'] | 'completion' | '__complete', Command>> = {
  up: {
    summary: 'start the plane in the foreground; Ctrl-C stops it',
    flags: upFlags,
    parse: (...given) => parseFlags(upFlags, given, (options) => ({ command: 'up', options })),
  },
  engine: {
    summary: 'start the embedded engine alone, without VMs, for other operators',
    flags: engineFlags,
    parse: (...given) => parseFlags(engineFlags, given, (options) => ({ command: 'engine', options })),
  },
  node: {
    summary: 'run the agent of one node; selfsame up starts its nodes by itself',
    flags: nodeFlags,
    parse: (...given) => parseFlags(nodeFlags, given, (options) => ({ command: 'node', options })),
  },
  host: {
    summary: 'call the host API of a node; selfsame host help lists its verbs',
    flags: hostFlags,
    words: 'VERB ...',
    completes: [['help', ...HOST_VERBS]],
    parse(args, env) {
      const end = wordsFrom(args);
      const words = args.slice(end);
      return parseFlags(hostFlags, [args.slice(0, end), env], (options) => ({
        command: 'host',
        options: { ...options, words },
      }));
    },
  },
  audit: {
    summary: 'show who changed what and who was refused, from the files of a server',
    flags: auditReaderFlags,
    notes: AUDIT_USAGE,
    moreFlags: Object.values(AUDIT_FLAGS),
    parse: (words, env) =>
      parseFlags(auditReaderFlags, [[], env], (options) => ({ command: 'audit', options: { ...options, words } })),
  },
  tour: {
    summary: 'see the promise kept on a real guest, in a few minutes; leaves nothing behind',
    flags: tourFlags,
    notes: [
      'Creates a VM with EFI and a TPM, restarts it, plugs disks, migrates, restores a snapshot, changes its machine type,',
      'and asks the guest itself after each step. Exit code 0: it is the selfsame machine; 1: it is not, or it could not be',
      'found out. Needs two nodes.',
    ],
    parse: (...given) => parseFlags(tourFlags, given, (options) => ({ command: 'tour', options })),
  },
  doctor: {
    summary: 'look at this machine: what works, what is missing, and what mends it',
    flags: doctorFlags,
    notes: ['Changes nothing. Exit code 0: VMs can run here; 1: something that they need is missing.'],
    parse: (...given) => parseFlags(doctorFlags, given, (options) => ({ command: 'doctor', options })),
  },
  'update-machine-types': {
    summary: 'change the machine types of VMs as a Job; virtctl update machine-types makes such Jobs',
    flags: transitionFlags,
    hidden: true,
    notes: TRANSITION_NOTES,
    parse(args, env) {
      const command = 'update-machine-types';
      return parseFlags(transitionFlags, [args, env], (options) => ({ command, options: { ...options, env } }));
    },
  },
  version: {
    summary: 'print the version',
    flags: {},
    parse: (...given) => parseFlags({}, given, () => ({ command: 'version' })),
  },
  help: {
    summary: 'print this text, or with a command its flags',
    flags: {},
    parse([topic]) {
      if (topic === undefined) return { command: 'help', text: programOverview(commands) };
      const command = commandNamed(topic);
      return 'usageError' in command ? command : { command: 'help', text: programHelp(topic, command) };
    },
  },
  completion: {
    summary: 'print a script by which a shell completes the words of selfsame',
    flags: {},
    words: SHELL_WORDS,
    completes: [SHELLS],
    parse([word, ...rest]) {
      const shell = SHELLS.find((one) => one === word);
      if (shell === undefined || rest.length > 0) return { usageError: `completion needs one of ${SHELLS.join(', ')}` };
      return { command: 'help', text: completionScript(shell, 'selfsame') };
    },
  },
  __complete: {
    summary: 'print what the last word can become, for the scripts of selfsame completion',
    flags: {},
    words: 'WORD ...',
    hidden: true,
    parse: (words) => ({ command: 'help', text: completionLines(completeWords(programTree(commands), words)) }),
  },
};

/** For tests over all of them. */
export const programCommands: Readonly<Record<string, ProgramCommand>> = commands;

/** `argv` without the interpreter and the script. */
export function parseCommandLine(argv: readonly string[], env: Environment): Config | UsageError {
  const [name, ...args] = argv;
  if (name === undefined) return { usageError: 'a command is missing' };
  if (isHelpFlag(name)) return commands.help.parse(args, env);
  if (name === '--version') return commands.version.parse(args, env);
  const command = commandNamed(name);
  if ('usageError' in command) return command;
  if (name === '__complete') return command.parse(args, env);
  const flags = command.words === undefined ? args : args.slice(0, wordsFrom(args));
  if (flags.some(isHelpFlag)) return commands.help.parse([name], env);
  return command.parse(args, env);
}

const isHelpFlag = (text: string) => text === '--help' || text === '-h';

/** Where flags end and words begin. */
function wordsFrom(args: readonly string[]): number {
  let index = 0;
  while (index < args.length && args[index]?.startsWith('-') === true) {
    const isWhole = isHelpFlag(args[index] ?? '') || args[index]?.includes('=') === true;
    index += isWhole ? 1 : 2;
  }
  return Math.min(index, args.length);
}

function commandNamed(name: string): Command | UsageError {
  const found = Object.entries(commands).find(([known]) => known === name);
  if (found !== undefined) return found[1];
  const shown = Object.entries(commands).flatMap(([known, { hidden }]) => (hidden === true ? [] : [known]));
  return { usageError: `unknown command ${JSON.stringify(name)}${suggestion(name, shown)}` };
}

function wordOf<const W extends string>(words: readonly W[]): (text: string) => { ok: W } | { mustBe: string } {
  return (text) => {
    const word = words.find((known) => known === text);
    return word === undefined ? { mustBe: `one of ${words.join(', ')}` } : { ok: word };
  };
}

function nonEmpty(text: string): { ok: string } | { mustBe: string } {
  return text === '' ? { mustBe: 'a path' } : { ok: text };
}
