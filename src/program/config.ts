/**
 * The command line as values: argv and environment in, a typed Config or a UsageError out. Pure; main.ts acts on it.
 *
 * A new flag is one entry of a flag table (flags.ts), a new command one entry of `commands` and of the Config union. Every flag
 * `--some-name` can also be given as SELFSAME_SOME_NAME; the command line wins.
 */
import { HOST_VERBS } from '#api/host-api.ts';
import { AUDIT_FLAGS, AUDIT_USAGE } from '#cli/audit/audit-query.ts';
import { completeWords, completionLines } from '#cli/completion/complete-words.ts';
import { completionScript, SHELLS } from '#cli/completion/completion-script.ts';
import { suggestion } from '#lib/nearest.ts';
import { controllersFlags, installFlags, joinFlags, uninstallFlags } from './cluster-flags.ts';
import type { ProgramFlagValues } from './flag.ts';
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
import {
  programHelp,
  programOverview,
  programTree,
  SHELL_WORDS,
  TRANSITION_NOTES,
  type ProgramCommand,
} from './help.ts';
import { parseFlags, type ProgramEnvironment, type UsageError } from './parse-flags.ts';

export type { ProgramEnvironment, UsageError };

export type EngineCommandOptions = ProgramFlagValues<typeof engineFlags>;
export type UpOptions = ProgramFlagValues<typeof upFlags>;
export type NodeOptions = ProgramFlagValues<typeof nodeFlags>;
export type InstallOptions = ProgramFlagValues<typeof installFlags>;
export type UninstallOptions = ProgramFlagValues<typeof uninstallFlags>;
export type JoinOptions = ProgramFlagValues<typeof joinFlags>;
export type ControllersOptions = ProgramFlagValues<typeof controllersFlags>;
export type HostOptions = ProgramFlagValues<typeof hostFlags> & {
  /** The verb and its arguments. */
  readonly words: readonly string[];
};

export type AuditReaderOptions = ProgramFlagValues<typeof auditReaderFlags> & {
  /** All arguments, including --data-dir. */
  readonly words: readonly string[];
};

export type TourCommandOptions = ProgramFlagValues<typeof tourFlags>;
export type DoctorOptions = ProgramFlagValues<typeof doctorFlags> & {
  /** The PATH of the caller. */
  readonly path: string;
};
export type BackupCommandOptions = { readonly dataDir: string; readonly to: string };
export type RestoreBackupOptions = { readonly dataDir: string; readonly from: string };

export type TransitionProgramOptions = ProgramFlagValues<typeof transitionFlags> & {
  /** Parsed by the program itself, because errors in it belong to the Job and not to the command line. */
  readonly env: ProgramEnvironment;
};

export type Config =
  | { readonly command: 'up'; readonly options: UpOptions }
  | { readonly command: 'engine'; readonly options: EngineCommandOptions }
  | { readonly command: 'node'; readonly options: NodeOptions }
  | { readonly command: 'install'; readonly options: InstallOptions }
  | { readonly command: 'uninstall'; readonly options: UninstallOptions }
  | { readonly command: 'join'; readonly options: JoinOptions }
  | { readonly command: 'controllers'; readonly options: ControllersOptions }
  | { readonly command: 'host'; readonly options: HostOptions }
  | { readonly command: 'audit'; readonly options: AuditReaderOptions }
  | { readonly command: 'tour'; readonly options: TourCommandOptions }
  | { readonly command: 'tour-plane'; readonly options: UpOptions }
  | { readonly command: 'doctor'; readonly options: DoctorOptions }
  | { readonly command: 'backup'; readonly options: BackupCommandOptions }
  | { readonly command: 'restore-backup'; readonly options: RestoreBackupOptions }
  | { readonly command: 'update-machine-types'; readonly options: TransitionProgramOptions }
  | { readonly command: 'version' }
  | { readonly command: 'help'; readonly text: string };

interface Command extends ProgramCommand {
  parse(args: readonly string[], env: ProgramEnvironment): Config | UsageError;
}

const commands: Readonly<Record<Config['command'] | 'completion' | '__complete', Command>> = {
  up: {
    summary: 'start the plane in the foreground; Ctrl-C stops it',
    flags: upFlags,
    parse: (...given) => parseFlags(upFlags, given, (options) => ({ command: 'up', options })),
  },
  engine: {
    summary: 'start only the embedded engine, without VMs, for other operators',
    flags: engineFlags,
    parse: (...given) => parseFlags(engineFlags, given, (options) => ({ command: 'engine', options })),
  },
  node: {
    summary: 'run the agent of one node; selfsame up starts its own nodes',
    flags: nodeFlags,
    parse: (...given) =>
      parseFlags(nodeFlags, given, (options) => findNodeFlagError(options) ?? { command: 'node', options }),
  },
  install: {
    summary: 'print or apply the manifests for an existing cluster',
    flags: installFlags,
    notes: [
      'The output is for kubectl apply --server-side. With --apply it is applied; applying it again changes nothing.',
    ],
    parse: (...given) =>
      parseFlags(installFlags, given, (options) =>
        options.dryRun && !options.apply ? { usageError: '--dry-run needs --apply' } : { command: 'install', options },
      ),
  },
  uninstall: {
    summary: 'print how to remove Selfsame from a cluster; refused while it has VMs',
    flags: uninstallFlags,
    parse: (...given) => parseFlags(uninstallFlags, given, (options) => ({ command: 'uninstall', options })),
  },
  join: {
    summary: 'write the kubeconfig for controllers or a node to join a cluster',
    flags: joinFlags,
    parse: (...given) =>
      parseFlags(joinFlags, given, (options) =>
        options.engineDataDir !== undefined && options.as !== 'node'
          ? { usageError: '--engine-data-dir requires --as node' }
          : { command: 'join', options },
      ),
  },
  controllers: {
    summary:
      'run webhook, aggregated API, operator and controllers for an existing cluster; of several replicas one leads',
    flags: controllersFlags,
    parse: (...given) => parseFlags(controllersFlags, given, (options) => ({ command: 'controllers', options })),
  },
  host: {
    summary: 'call the host API of a node; selfsame host help lists its verbs',
    flags: hostFlags,
    words: 'VERB ...',
    completes: [['help', ...HOST_VERBS]],
    parse(args, env) {
      const end = firstWordIndex(args);
      const words = args.slice(end);
      return parseFlags(hostFlags, [args.slice(0, end), env], (options) => ({
        command: 'host',
        options: { ...options, words },
      }));
    },
  },
  audit: {
    summary: 'show who changed what and who was refused, from the audit log of a server',
    flags: auditReaderFlags,
    notes: AUDIT_USAGE,
    moreFlags: Object.values(AUDIT_FLAGS),
    parse: (words, env) =>
      parseFlags(auditReaderFlags, [[], env], (options) => ({ command: 'audit', options: { ...options, words } })),
  },
  tour: {
    summary: 'show on a real guest that a VM keeps its identity; takes a few minutes and cleans up',
    flags: tourFlags,
    notes: [
      'Creates a VM with EFI and a TPM, restarts it, plugs disks, migrates, restores a snapshot, changes its machine type,',
      'and asks the guest itself after each step. Exit code 0: it is the selfsame machine; 1: it is not, or the tour could',
      'not finish. Needs two nodes. Ctrl-C stops the tour and cleans up.',
    ],
    parse: (...given) => parseFlags(tourFlags, given, (options) => ({ command: 'tour', options })),
  },
  'tour-plane': {
    summary:
      'run the temporary plane of selfsame tour; at the end of its standard input it stops and removes guests and data directory',
    flags: upFlags,
    hidden: true,
    parse: (...given) => parseFlags(upFlags, given, (options) => ({ command: 'tour-plane', options })),
  },
  doctor: {
    summary: 'check this machine: what works, what is missing, and how to fix it',
    flags: doctorFlags,
    notes: ['Changes nothing. Exit code 0: VMs can run here; 1: something that they need is missing.'],
    parse: (args, env) =>
      parseFlags(doctorFlags, [args, env], (options) => ({
        command: 'doctor',
        options: { ...options, path: env['PATH'] ?? '' },
      })),
  },
  backup: {
    summary: 'back up the engine (all objects and keys), running or stopped',
    flags: backupFlags,
    notes: ['Disks and TPM state of guests are not included; see docs/operations.md for how to back them up.'],
    parse: (...given) =>
      parseFlags(backupFlags, given, ({ dataDir, to }) =>
        to === undefined ? { usageError: '--to FILE is required' } : { command: 'backup', options: { dataDir, to } },
      ),
  },
  'restore-backup': {
    summary: 'restore a backup into a data directory that no server uses',
    flags: restoreBackupFlags,
    notes: ['Existing data is moved to replaced-TIME in the data directory.'],
    parse: (...given) =>
      parseFlags(restoreBackupFlags, given, ({ dataDir, from }) =>
        from === undefined
          ? { usageError: '--from FILE is required' }
          : { command: 'restore-backup', options: { dataDir, from } },
      ),
  },
  'update-machine-types': {
    summary: 'change the machine types of VMs as a Job; virtctl update machine-types creates such Jobs',
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
    summary: 'print this text, or the flags of a command',
    flags: {},
    parse([topic]) {
      if (topic === undefined) return { command: 'help', text: programOverview(commands) };
      const command = findProgramCommand(topic);
      return 'usageError' in command ? command : { command: 'help', text: programHelp(topic, command) };
    },
  },
  completion: {
    summary: 'print a shell completion script for selfsame',
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
    summary: 'print the completions of the last word, for the scripts of selfsame completion',
    flags: {},
    words: 'WORD ...',
    hidden: true,
    parse: (words) => ({ command: 'help', text: completionLines(completeWords(programTree(commands), words)) }),
  },
};

/** Refuses address flags without --kubeconfig: nodes of the embedded engine are on this machine. */
function findNodeFlagError({ kubeconfig, address, nodeIp, hostname }: NodeOptions): UsageError | undefined {
  if (kubeconfig !== undefined) return undefined;
  const given = { address, 'node-ip': nodeIp, hostname };
  const [name] = Object.entries(given).find(([, value]) => value !== undefined) ?? [];
  return name === undefined ? undefined : { usageError: `--${name} needs --kubeconfig` };
}

/** All commands, for tests. */
export const programCommands: Readonly<Record<string, ProgramCommand>> = commands;

/** Parses the command line. `argv` does not include interpreter and script. */
export function parseCommandLine(argv: readonly string[], env: ProgramEnvironment): Config | UsageError {
  const [name, ...args] = argv;
  if (name === undefined) return { usageError: 'no command given' };
  if (isHelpFlag(name)) return commands.help.parse(args, env);
  if (name === '--version') return commands.version.parse(args, env);
  const command = findProgramCommand(name);
  if ('usageError' in command) return command;
  if (name === '__complete') return command.parse(args, env);
  const flags = command.words === undefined ? args : args.slice(0, firstWordIndex(args));
  if (flags.some(isHelpFlag)) return commands.help.parse([name], env);
  return command.parse(args, env);
}

const isHelpFlag = (text: string) => text === '--help' || text === '-h';

/** Returns the index of the first argument after the flags. */
function firstWordIndex(args: readonly string[]): number {
  let index = 0;
  while (index < args.length && args[index]?.startsWith('-') === true) {
    const isWhole = isHelpFlag(args[index] ?? '') || args[index]?.includes('=') === true;
    index += isWhole ? 1 : 2;
  }
  return Math.min(index, args.length);
}

function findProgramCommand(name: string): Command | UsageError {
  const found = Object.entries(commands).find(([known]) => known === name);
  if (found !== undefined) return found[1];
  const shown = Object.entries(commands).flatMap(([known, { hidden }]) => (hidden === true ? [] : [known]));
  return { usageError: `unknown command ${JSON.stringify(name)}${suggestion(name, shown)}` };
}
