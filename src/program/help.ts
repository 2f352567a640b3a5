/** What the selfsame program says about itself, and to shells that complete its words. Pure. */
import type { CompletionFlag, CompletionNode } from '#cli/completion/complete-words.ts';
import { completionExample, SHELLS } from '#cli/completion/completion-script.ts';
import type { Completes } from '#cli/flags.ts';
import type { FlagTable } from './flag.ts';
import { variableOf } from './parse-flags.ts';

export interface ProgramCommand {
  readonly summary: string;
  readonly flags: FlagTable;
  /** What follows its flags; --help there is for whoever gets it. */
  readonly words?: string;
  /** What these can be. */
  readonly completes?: readonly Completes[];
  /** Flags that it reads by itself, for completion. */
  readonly moreFlags?: readonly CompletionFlag[];
  /** For programs, not for people: the overview leaves it out. */
  readonly hidden?: true;
  /** Lines below its flags. */
  readonly notes?: readonly string[];
}

/** Of the column of flags. */
const MIN_WIDTH = 26;

type Commands = Readonly<Record<string, ProgramCommand>>;

export function programOverview(commands: Commands): string {
  const shown = Object.entries(commands).filter(([, { hidden }]) => hidden !== true);
  const width = Math.max(...shown.map(([name]) => name.length));
  return [
    'selfsame keeps virtual machines the selfsame machines.',
    '',
    'Usage: selfsame COMMAND [--flag value ...]',
    '',
    ...shown.map(([name, { summary }]) => `  ${name.padEnd(width)}  ${summary}`),
    '',
    'selfsame COMMAND --help lists the flags of a command.',
    '',
  ].join('\n');
}

export function programHelp(name: string, { summary, flags, words, notes = [] }: ProgramCommand): string {
  const all = Object.values(flags);
  const usage = [name, ...(all.length === 0 ? [] : ['[flags]']), ...(words === undefined ? [] : [words])].join(' ');
  const width = Math.max(MIN_WIDTH, ...all.map((flag) => flag.name.length + flag.value.length + 5));
  const rows = all.flatMap(({ name: flagName, value, help, required, fallback, fallbackText = String(fallback) }) => [
    `  ${`--${flagName} ${value}`.trimEnd().padEnd(width)}${help}`,
    `  ${''.padEnd(width)}(${required === true ? 'must be given' : `default ${fallbackText}`}; also ${variableOf(flagName)})`,
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
      { name: 'help', short: 'h', value: '', help: 'what the command does' },
    ],
  }));
  return { name: 'selfsame', summary: '', flags: [], commands: nodes, completes: [] };
}

/** Each with its `#` line. */
export const EXAMPLES: ReadonlyMap<string, string> = new Map([
  [
    'up',
    [
      '  # A plane with two nodes; kubectl and virtctl reach it with the kubeconfig that is printed:',
      '  selfsame up',
      '',
      '  # Another one beside it, with simulated guests:',
      '  selfsame up --data-dir /tmp/second --port 7443 --nodes 3 --hypervisor fake',
    ].join('\n'),
  ],
  ['engine', '  # An API server for another operator:\n  selfsame engine --data-dir /tmp/engine --port 7443'],
  [
    'node',
    [
      '  # One more node, whose kubeconfig is in its data directory:',
      '  selfsame node --name node-3 --data-dir /srv/node-3',
      '',
      '  # A node of a cluster of others:',
      '  selfsame node --kubeconfig host-7.kubeconfig --name host-7 --data-dir /srv/host-7 --node-ip 10.0.0.7',
    ].join('\n'),
  ],
  [
    'host',
    [
      '  # Which verbs there are, and the VMs of a node:',
      '  selfsame host help',
      '  selfsame host --node node-1 list',
    ].join('\n'),
  ],
  [
    'audit',
    [
      '  # Who changed VMs today:',
      '  selfsame audit --resource virtualmachines --since 24h',
      '',
      '  # What is refused, as it happens:',
      '  selfsame audit --refused --follow',
    ].join('\n'),
  ],
  [
    'tour',
    [
      '  # With a plane of its own, or the one that runs:',
      '  selfsame tour',
      '',
      '  # With another one:',
      '  selfsame tour --kubeconfig /tmp/second/kubeconfig',
    ].join('\n'),
  ],
  ['doctor', '  # Can VMs run here?\n  selfsame doctor\n\n  # The same for programs:\n  selfsame doctor --output json'],
  [
    'install',
    [
      '  # What would be there, to read or for GitOps:',
      '  selfsame install',
      '',
      '  # All of it, onto the cluster of a kubeconfig:',
      '  selfsame install --apply --kubeconfig admin.kubeconfig',
    ].join('\n'),
  ],
  ['uninstall', '  # What to delete, once there are no VMs:\n  selfsame uninstall --kubeconfig admin.kubeconfig'],
  [
    'join',
    [
      '  # A kubeconfig for selfsame controllers, and one for a node:',
      '  selfsame join --as controllers --kubeconfig admin.kubeconfig --out controllers.kubeconfig',
      '  selfsame join --as node --name host-7 --kubeconfig admin.kubeconfig --out host-7.kubeconfig',
    ].join('\n'),
  ],
  [
    'controllers',
    '  # Beside others that wait for their turn:\n  selfsame controllers --kubeconfig controllers.kubeconfig --webhook-port 9443',
  ],
  ['backup', '  # While the plane runs:\n  selfsame backup --to /backup/selfsame-monday.tar.gz'],
  ['restore-backup', '  # While it does not run:\n  selfsame restore-backup --from /backup/selfsame-monday.tar.gz'],
  ['version', '  # Which selfsame, and which Node runs it:\n  selfsame version'],
  ['help', '  # What there is, and the flags of one command:\n  selfsame help\n  selfsame help up'],
  ['completion', completionExample('selfsame')],
]);

export const SHELL_WORDS = SHELLS.join('|');

export const TRANSITION_NOTES = [
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
] as const;
