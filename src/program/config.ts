/**
 * The command line as values: argv and environment in, a typed Config or a UsageError out. Pure; main.ts acts on it.
 *
 * A new flag is one entry of a flag table (flags.ts), a new command one entry of `commands` and of the Config union. Every flag
 * `--some-name` can also be given as SELFSAME_SOME_NAME; the command line wins.
 */
import { AUDIT_USAGE } from '#cli/audit/audit-query.ts';
import {
  auditReaderFlags,
  backupFlags,
  doctorFlags,
  engineFlags,
  hostFlags,
  nodeFlags,
  restoreBackupFlags,
  tourFlags,
  transitionFlags,
  upFlags,
} from './flags.ts';
import type { FlagTable, Values } from './flag.ts';
import { controllersFlags, installFlags, joinFlags, uninstallFlags } from './cluster-flags.ts';

export interface UsageError {
  /** What is wrong, as one sentence for people. */
  readonly usageError: string;
}

export type EngineOptions = Values<typeof engineFlags>;
export type UpOptions = Values<typeof upFlags>;
export type NodeOptions = Values<typeof nodeFlags>;
export type InstallOptions = Values<typeof installFlags>;
export type UninstallOptions = Values<typeof uninstallFlags>;
export type JoinOptions = Values<typeof joinFlags>;
export type ControllersOptions = Values<typeof controllersFlags>;
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
export type BackupOptions = { readonly dataDir: string; readonly to: string };
export type RestoreBackupOptions = { readonly dataDir: string; readonly from: string };

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
  | { readonly command: 'backup'; readonly options: BackupOptions }
  | { readonly command: 'restore-backup'; readonly options: RestoreBackupOptions }
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
    flags: controllersFlags,
    parse: (...given) => parseFlags(controllersFlags, given, (options) => ({ command: 'controllers', options })),
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
  backup: {
    summary: 'write a backup of the engine (all objects, its keys), while it runs or not',
    flags: backupFlags,
    notes: [
      'Disks and TPM state of guests are not in it: docs/operations.md says how to keep those. Example:',
      '  selfsame backup --to /backup/selfsame-monday.tar.gz',
    ],
    parse: (...given) =>
      parseFlags(backupFlags, given, ({ dataDir, to }) =>
        to === undefined ? { usageError: '--to FILE is missing' } : { command: 'backup', options: { dataDir, to } },
      ),
  },
  'restore-backup': {
    summary: 'put a backup into a data directory that no server uses',
    flags: restoreBackupFlags,
    notes: [
      'What is there moves aside, into replaced-TIME of the data directory. Example:',
      '  selfsame restore-backup --from /backup/selfsame-monday.tar.gz',
    ],
    parse: (...given) =>
      parseFlags(restoreBackupFlags, given, ({ dataDir, from }) =>
        from === undefined
          ? { usageError: '--from FILE is missing' }
          : { command: 'restore-backup', options: { dataDir, from } },
      ),
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
  config: (options: Values<Table>) => Config | UsageError,
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

function variableOf(flagName: string): string {
  return `SELFSAME_${flagName.toUpperCase().replaceAll('-', '_')}`;
}

function overview(): string {
  const shown = Object.entries(commands).filter(([, { hidden }]) => hidden !== true);
  const lines = shown.map(([name, { summary }]) => `  ${name.padEnd(16)}${summary}`);
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
