/**
 * The command line as values: argv and environment in, a typed Config or a UsageError out. Pure; main.ts acts on it.
 *
 * A new flag is one entry of a flag table, a new command one entry of `commands` and of the Config union. Every flag
 * `--some-name` can also be given as SELFSAME_SOME_NAME; the command line wins.
 */
import { isIP } from 'node:net';
import { join } from 'node:path';
import { AUDIT_USAGE } from '#cli/audit/audit-query.ts';
import { auditFlags } from '#engine/audit/audit-options.ts';
import type { LogLevel } from '#lib/log.ts';
import { controllersFlags, installFlags, joinFlags, nodeClusterFlags, uninstallFlags } from './cluster-config.ts';

const PROJECT_ROOT = join(import.meta.dirname, '..');
const LOG_LEVELS: readonly LogLevel[] = ['debug', 'info', 'warn', 'error', 'silent'];
const MAX_PORT = 65_535;
/** On one machine; more belong to a cluster. */
const MAX_NODES = 100;
const NODE_NAME = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/;

export interface UsageError {
  /** What is wrong, as one sentence for people. */
  readonly usageError: string;
}

interface Flag<T> {
  readonly name: string;
  /** What stands for the value in the help. */
  readonly value: string;
  readonly help: string;
  /** As the help shows it. */
  readonly fallbackText?: string;
  readonly fallback: T;
  /** Says yes by itself, without a value. */
  readonly bare?: true;
  /** The complaint completes "… must be". */
  parse(text: string): { ok: T } | { mustBe: string };
}

const flag = <T>(options: Flag<T>): Flag<T> => options;

const logLevel = flag<LogLevel>({
  name: 'log-level',
  value: 'LEVEL',
  help: LOG_LEVELS.join(', '),
  fallback: 'warn',
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
    parse: wordOf(HYPERVISORS),
  }),
  accel: flag<(typeof ACCELERATORS)[number]>({
    name: 'accel',
    value: 'NAME',
    help: 'auto takes kvm where it works, else tcg (software emulation)',
    fallback: 'auto',
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
    parse: nonEmpty,
  }),
  sharedDir: flag<string>({
    name: 'shared-dir',
    value: 'DIR',
    help: 'where volumes lie that every node reaches',
    fallback: join(PROJECT_ROOT, '.selfsame/shared'),
    fallbackText: '.selfsame/shared in the folder of the program',
    parse: nonEmpty,
  }),
  ...nodeClusterFlags,
  ...guestFlags,
  logLevel,
};

const controllersTable = { ...controllersFlags, logLevel };

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
    parse: nonEmpty,
  }),
  dataDir: engineFlags.dataDir,
};

const transitionFlags = {
  // Its log is what people read to follow the Job.
  logLevel: flag<LogLevel>({ ...logLevel, fallback: 'info' }),
};

type FlagTable = Readonly<Record<string, Flag<unknown>>>;
type Values<Table extends FlagTable> = {
  readonly [Key in keyof Table]: Table[Key] extends Flag<infer T> ? T : never;
};
export type EngineOptions = Values<typeof engineFlags>;
export type UpOptions = Values<typeof upFlags>;
export type NodeOptions = Values<typeof nodeFlags>;
export type InstallOptions = Values<typeof installFlags>;
export type UninstallOptions = Values<typeof uninstallFlags>;
export type JoinOptions = Values<typeof joinFlags>;
export type ControllersOptions = Values<typeof controllersTable>;
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
  | { readonly command: 'install'; readonly options: InstallOptions }
  | { readonly command: 'uninstall'; readonly options: UninstallOptions }
  | { readonly command: 'join'; readonly options: JoinOptions }
  | { readonly command: 'controllers'; readonly options: ControllersOptions }
  | { readonly command: 'host'; readonly options: HostOptions }
  | { readonly command: 'audit'; readonly options: AuditReaderOptions }
  | { readonly command: 'tour'; readonly options: TourOptions }
  | { readonly command: 'doctor'; readonly options: DoctorOptions }
  | { readonly command: 'update-machine-types'; readonly options: TransitionProgramOptions }
  | { readonly command: 'version' }
  | { readonly command: 'help'; readonly text: string };

interface Command {
  readonly summary: string;
  readonly flags: FlagTable;
  /** What follows its flags; --help there is for whoever gets it. */
  readonly words?: string;
  /** For programs, not for people: the overview leaves it out. */
  readonly hidden?: true;
  /** Lines below its flags. */
  readonly notes?: readonly string[];
  parse(args: readonly string[], env: Environment): Config | UsageError;
}

export type Environment = Readonly<Record<string, string | undefined>>;

const commands: Readonly<Record<Config['command'], Command>> = {
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
  install: {
    summary: 'print all that we need on a cluster of others, or apply it',
    flags: installFlags,
    notes: ['Printed for kubectl apply --server-side; with --apply it is applied, and again without a change.'],
    parse: (...given) => parseFlags(installFlags, given, (options) => ({ command: 'install', options })),
  },
  uninstall: {
    summary: 'print how to take us off a cluster; refused while it has VMs',
    flags: uninstallFlags,
    parse: (...given) => parseFlags(uninstallFlags, given, (options) => ({ command: 'uninstall', options })),
  },
  join: {
    summary: 'write the kubeconfig with which a process of ours joins a cluster',
    flags: joinFlags,
    parse: (...given) => parseFlags(joinFlags, given, (options) => ({ command: 'join', options })),
  },
  controllers: {
    summary: 'run webhook, aggregated API, operator and controllers on a cluster of others; several may, one leads',
    flags: controllersTable,
    parse: (...given) => parseFlags(controllersTable, given, (options) => ({ command: 'controllers', options })),
  },
  host: {
    summary: 'call the host API of a node; selfsame host help lists its verbs',
    flags: hostFlags,
    words: 'VERB ...',
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
    notes: [
      'What it does is told by variables:',
      '  JOB_GLOB                  machine types that are to go; needed',
      '  JOB_TARGET                the type to set (default: cleared, so that the next start takes the default)',
      '  JOB_NAMESPACE, JOB_LABEL_SELECTOR, JOB_NAME_OF_VM, JOB_STATE (running, stopped)',
      '                            which VMs (default: all)',
      '  JOB_RESTART_NOW           true: restart running VMs instead of marking them',
      '  JOB_MAX_RESTARTS          at the same time (default 10)',
      '  JOB_MAX_FAILURES          more than these end the Job (default: no limit)',
      '  JOB_NAME                  the Job that it runs for (default: as its token tells)',
      '  SELFSAME_API_SERVER, SELFSAME_TOKEN_FILE, SELFSAME_CA_FILE',
      '                            how to reach the API (default: as in any pod of a cluster)',
    ],
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
      if (topic === undefined) return { command: 'help', text: overview() };
      const command = commandNamed(topic);
      return 'usageError' in command ? command : { command: 'help', text: commandHelp(topic, command) };
    },
  },
};

/** `argv` without the interpreter and the script. */
export function parseCommandLine(argv: readonly string[], env: Environment): Config | UsageError {
  const [name, ...args] = argv;
  if (name === undefined) return { usageError: 'a command is missing' };
  if (isHelpFlag(name)) return commands.help.parse(args, env);
  if (name === '--version') return commands.version.parse(args, env);
  const command = commandNamed(name);
  if ('usageError' in command) return command;
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
  return found?.[1] ?? { usageError: `unknown command ${JSON.stringify(name)}` };
}

function parseFlags<Table extends FlagTable>(
  table: Table,
  [args, env]: readonly [readonly string[], Environment],
  config: (options: Values<Table>) => Config,
): Config | UsageError {
  const given = readArguments(table, args);
  if ('usageError' in given) return given;
  const values: Record<string, unknown> = {};
  for (const [key, { name, fallback, parse }] of Object.entries(table)) {
    const fromArgs = given.texts.get(name);
    const text = fromArgs ?? env[variableOf(name)];
    const source = fromArgs === undefined ? variableOf(name) : `--${name}`;
    const parsed = text === undefined ? { ok: fallback } : parse(text);
    if ('mustBe' in parsed) return { usageError: `${source} must be ${parsed.mustBe}, not ${JSON.stringify(text)}` };
    values[key] = parsed.ok;
  }
  return config(values as Values<Table>);
}

/** `--name value` and `--name=value`; the last one of a name counts, as everywhere. */
function readArguments(table: FlagTable, args: readonly string[]): { texts: Map<string, string> } | UsageError {
  const known = new Map(Object.values(table).map((one) => [one.name, one]));
  const texts = new Map<string, string>();
  const rest = [...args];
  for (let arg = rest.shift(); arg !== undefined; arg = rest.shift()) {
    const [, name, inline] = /^--([^=]+)(?:=(.*))?$/s.exec(arg) ?? [];
    if (name === undefined) return { usageError: `unexpected argument ${JSON.stringify(arg)}` };
    if (!known.has(name)) return { usageError: `unknown flag --${name}` };
    const text = inline ?? (known.get(name)?.bare === true ? 'true' : rest.shift());
    if (text === undefined) return { usageError: `--${name} needs a value` };
    texts.set(name, text);
  }
  return { texts };
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

function variableOf(flagName: string): string {
  return `SELFSAME_${flagName.toUpperCase().replaceAll('-', '_')}`;
}

function overview(): string {
  const shown = Object.entries(commands).filter(([, { hidden }]) => hidden !== true);
  const lines = shown.map(([name, { summary }]) => `  ${name.padEnd(13)}${summary}`);
  return [
    'selfsame keeps virtual machines the selfsame machines.',
    '',
    'Usage: selfsame COMMAND [--flag value ...]',
    '',
    ...lines,
    '',
    'selfsame COMMAND --help lists the flags of a command.',
    '',
  ].join('\n');
}

function commandHelp(name: string, { summary, flags, words, notes = [] }: Command): string {
  const all = Object.values(flags);
  const usage = [name, ...(all.length === 0 ? [] : ['[flags]']), ...(words === undefined ? [] : [words])].join(' ');
  const head = [`selfsame ${name}: ${summary}`, '', `Usage: selfsame ${usage}`, ''];
  const rows = all.flatMap(({ name: flagName, value, help, fallback, fallbackText = String(fallback) }) => [
    `  ${`--${flagName} ${value}`.trimEnd().padEnd(26)}${help}`,
    `  ${''.padEnd(26)}(default ${fallbackText}; also ${variableOf(flagName)})`,
  ]);
  const below = notes.length === 0 ? [] : ['', ...notes];
  return [...head, ...rows, ...below, ...(rows.length === 0 ? [] : [''])].join('\n');
}
