/** Help texts and completion tree of the selfsame program. Pure. */
import type { CompletionFlag, CompletionNode } from '#cli/completion/complete-words.ts';
import { completionExample, SHELLS } from '#cli/completion/completion-script.ts';
import type { Completes } from '#cli/parsing/flags.ts';
import type { ProgramFlagTable } from './flag.ts';
import { variableOf } from './parse-flags.ts';

export interface ProgramCommand {
  readonly summary: string;
  readonly flags: ProgramFlagTable;
  /** Arguments after the flags, which may contain a --help of their own. */
  readonly words?: string;
  /** Completions of these arguments, by position. */
  readonly completes?: readonly Completes[];
  /** Flags that the command parses itself, for completion. */
  readonly moreFlags?: readonly CompletionFlag[];
  /** Omitted from the overview: called by programs only. */
  readonly hidden?: true;
  /** Lines below its flags. */
  readonly notes?: readonly string[];
}

/** The minimum width of the flag column. */
const MIN_WIDTH = 26;

type Commands = Readonly<Record<string, ProgramCommand>>;

export function programOverview(commands: Commands): string {
  const shown = Object.entries(commands).filter(([, { hidden }]) => hidden !== true);
  const width = Math.max(...shown.map(([name]) => name.length));
  return [
    'selfsame runs virtual machines and preserves the identity of each one.',
    '',
    'Usage: selfsame COMMAND [--flag value ...]',
    '',
    ...shown.map(([name, { summary }]) => `  ${name.padEnd(width)}  ${summary}`),
    '',
    'Use "selfsame COMMAND --help" for the flags of a command.',
    '',
  ].join('\n');
}

export function programHelp(name: string, { summary, flags, words, notes = [] }: ProgramCommand): string {
  const all = Object.values(flags);
  const usage = [name, ...(all.length === 0 ? [] : ['[flags]']), ...(words === undefined ? [] : [words])].join(' ');
  const width = Math.max(MIN_WIDTH, ...all.map((flag) => flag.name.length + flag.value.length + 5));
  const rows = all.flatMap(({ name: flagName, value, help, required, fallback, fallbackText = String(fallback) }) => [
    `  ${`--${flagName} ${value}`.trimEnd().padEnd(width)}${help}`,
    `  ${''.padEnd(width)}(${required === true ? 'required' : `default ${fallbackText}`}; also ${variableOf(flagName)})`,
  ]);
  const examples = EXAMPLES.get(name);
  const sections = [
    [`selfsame ${name}: ${summary}`],
    [`Usage: selfsame ${usage}`],
    rows,
    notes,
    examples === undefined ? [] : ['Examples:', examples],
  ];
  return `${sections
    .filter((lines) => lines.length > 0)
    .map((lines) => lines.join('\n'))
    .join('\n\n')}\n`;
}

export function programTree(commands: Commands): CompletionNode {
  const nodes = Object.entries(commands).map(([name, { summary, flags, moreFlags = [], hidden, completes = [] }]) => ({
    ...{ name, summary, completes, commands: [], hidden: hidden === true },
    flags: [
      ...Object.values(flags),
      ...moreFlags,
      { name: 'help', short: 'h', value: '', help: 'help for the command' },
    ],
  }));
  return { name: 'selfsame', summary: '', flags: [], commands: nodes, completes: [] };
}

/** Examples by command; each has a `#` line. */
export const EXAMPLES: ReadonlyMap<string, string> = new Map([
  [
    'up',
    [
      '  # Start a plane with two nodes; use the printed kubeconfig with kubectl and virtctl:',
      '  selfsame up',
      '',
      '  # Start a second plane with simulated guests:',
      '  selfsame up --data-dir /tmp/second --port 7443 --nodes 3 --hypervisor fake',
    ].join('\n'),
  ],
  ['engine', '  # Start an API server for another operator:\n  selfsame engine --data-dir /tmp/engine --port 7443'],
  [
    'node',
    [
      '  # Run an additional node whose kubeconfig is in its data directory:',
      '  selfsame node --name node-3 --data-dir /srv/node-3',
      '',
      '  # Run a node of an existing cluster:',
      '  selfsame node --kubeconfig host-7.kubeconfig --name host-7 --data-dir /srv/host-7 --node-ip 10.0.0.7',
    ].join('\n'),
  ],
  [
    'host',
    ['  # List the verbs, and the VMs of a node:', '  selfsame host help', '  selfsame host --node node-1 list'].join(
      '\n',
    ),
  ],
  [
    'audit',
    [
      '  # Show who changed VMs in the last 24 hours:',
      '  selfsame audit --resource virtualmachines --since 24h',
      '',
      '  # Follow refused requests:',
      '  selfsame audit --refused --follow',
    ].join('\n'),
  ],
  [
    'tour',
    [
      '  # Use the running plane, or start a temporary one:',
      '  selfsame tour',
      '',
      '  # Use another plane:',
      '  selfsame tour --kubeconfig /tmp/second/kubeconfig',
    ].join('\n'),
  ],
  [
    'doctor',
    '  # Check whether VMs can run on this machine:\n  selfsame doctor\n\n  # Print the result as JSON:\n  selfsame doctor --output json',
  ],
  [
    'install',
    [
      '  # Print the manifests, to review or for GitOps:',
      '  selfsame install',
      '',
      '  # Apply them to the cluster of a kubeconfig:',
      '  selfsame install --apply --kubeconfig admin.kubeconfig',
    ].join('\n'),
  ],
  ['uninstall', '  # Print what to delete, once there are no VMs:\n  selfsame uninstall --kubeconfig admin.kubeconfig'],
  [
    'join',
    [
      '  # Write a kubeconfig for selfsame controllers, and one for a node:',
      '  selfsame join --as controllers --kubeconfig admin.kubeconfig --out controllers.kubeconfig',
      '  selfsame join --as node --name host-7 --kubeconfig admin.kubeconfig --out host-7.kubeconfig',
    ].join('\n'),
  ],
  [
    'controllers',
    '  # Run the controllers; with several replicas, one leads:\n  selfsame controllers --kubeconfig controllers.kubeconfig --webhook-port 9443',
  ],
  ['backup', '  # Back up a running plane:\n  selfsame backup --to /backup/selfsame-monday.tar.gz'],
  ['restore-backup', '  # Restore a stopped plane:\n  selfsame restore-backup --from /backup/selfsame-monday.tar.gz'],
  ['version', '  # Print the versions of selfsame and Node.js:\n  selfsame version'],
  ['help', '  # List the commands, and the flags of one command:\n  selfsame help\n  selfsame help up'],
  ['completion', completionExample('selfsame')],
]);

export const SHELL_WORDS = SHELLS.join('|');

export const TRANSITION_NOTES = [
  'Configured with environment variables:',
  '  JOB_GLOB                  glob of the machine types to replace; required',
  '  JOB_TARGET                the type to set (default: clear it, so that the next start uses the default)',
  '  JOB_NAMESPACE, JOB_LABEL_SELECTOR, JOB_NAME_OF_VM, JOB_STATE (running, stopped)',
  '                            which VMs to change (default: all)',
  '  JOB_RESTART_NOW           true: restart running VMs instead of marking them',
  '  JOB_MAX_RESTARTS          how many VMs may restart at the same time (default 10)',
  '  JOB_MAX_FAILURES          stop after more failures than this (default: no limit)',
  '  JOB_NAME                  the Job that it runs for (default: read from its token)',
  '  SELFSAME_API_SERVER, SELFSAME_TOKEN_FILE, SELFSAME_CA_FILE',
  '                            how to reach the API (default: the in-cluster configuration)',
] as const;
