/**
 * The commands of the `selfsame` program as data. A new flag is one entry of a flag table (flags.ts), a new command one entry
 * here. Each command loads the code that it runs only when it is called, to keep help and completion fast.
 */
import { HOST_VERBS } from '#api/host-api.ts';
import { commandTree, completeWords, completionLines } from '#lib/command-line/complete-words.ts';
import { completionExample, completionScript, SHELLS } from '#lib/command-line/completion-script.ts';
import type { Command, CommandDefinition } from '#lib/command-line/command.ts';
import { UsageError } from '#lib/command-line/command-error.ts';
import { switchFlag, type FlagTable } from '#lib/command-line/flag.ts';
import type { EnvironmentVariables } from '#lib/command-line/parse-args.ts';
import type { ProgramTable } from '#lib/command-line/resolve-call.ts';
import { VERSION } from '#lib/version.ts';
import { controllers, installIntoCluster, joinCluster, uninstall } from './clusters.ts';
import {
  auditReaderFlags,
  backupFlags,
  controllersFlags,
  doctorFlags,
  engineFlags,
  hostFlags,
  installFlags,
  joinFlags,
  nodeFlags,
  restoreBackupFlags,
  tourFlags,
  transitionFlags,
  uninstallFlags,
  upFlags,
  type NodeOptions,
} from './flags.ts';
import { node } from './node.ts';
import { engine, up } from './serve.ts';
import { tourPlane } from './tour-plane.ts';
import { audit, backup, doctor, host, runMachineTypeUpdate, runRestoreBackup, tour } from './tools.ts';

/** The context in which commands of selfsame run. */
interface SelfsameContext {
  readonly env: EnvironmentVariables;
  readonly stdout: { write(text: string): unknown };
}

type SelfsameCommand = Command<SelfsameContext>;

const defineCommand = <Table extends FlagTable>(
  definition: CommandDefinition<Table, SelfsameContext>,
): SelfsameCommand => definition;

const commands: readonly SelfsameCommand[] = [
  defineCommand({
    name: 'up',
    usage: '',
    summary: 'Start the plane in the foreground; Ctrl-C stops it.',
    example: [
      '  # Start a plane with two nodes; use the printed kubeconfig with kubectl and virtctl:',
      '  selfsame up',
      '',
      '  # Start a second plane with simulated guests:',
      '  selfsame up --data-dir /tmp/second --port 7443 --nodes 3 --hypervisor fake',
    ].join('\n'),
    flags: upFlags,
    args: 0,
    run: ({ flags, env }) => up(flags, env),
  }),
  defineCommand({
    name: 'engine',
    usage: '',
    summary: 'Start only the embedded engine, without VMs, for other operators.',
    example: '  # Start an API server for another operator:\n  selfsame engine --data-dir /tmp/engine --port 7443',
    flags: engineFlags,
    args: 0,
    run: ({ flags }) => engine(flags),
  }),
  defineCommand({
    name: 'node',
    usage: '',
    summary: 'Run the agent of one node; selfsame up starts its own nodes.',
    example: [
      '  # Run an additional node whose kubeconfig is in its data directory:',
      '  selfsame node --name node-3 --data-dir /srv/node-3',
      '',
      '  # Run a node of an existing cluster:',
      '  selfsame node --kubeconfig host-7.kubeconfig --name host-7 --data-dir /srv/host-7 --node-ip 10.0.0.7',
    ].join('\n'),
    flags: nodeFlags,
    args: 0,
    async run({ flags, env }) {
      checkNodeFlags(flags);
      return await node(flags, env);
    },
  }),
  defineCommand({
    name: 'install',
    usage: '',
    summary: 'Print or apply the manifests for an existing cluster.',
    details:
      'The output is for kubectl apply --server-side. With --apply it is applied; applying it again changes nothing.',
    example: [
      '  # Print the manifests, to review or for GitOps:',
      '  selfsame install',
      '',
      '  # Apply them to the cluster of a kubeconfig:',
      '  selfsame install --apply --kubeconfig admin.kubeconfig',
    ].join('\n'),
    flags: installFlags,
    args: 0,
    async run({ flags, env }) {
      if (flags.dryRun && !flags.apply) throw new UsageError('--dry-run needs --apply');
      return await installIntoCluster(flags, env);
    },
  }),
  defineCommand({
    name: 'uninstall',
    usage: '',
    summary: 'Print how to remove Selfsame from a cluster; refused while it has VMs.',
    example: '  # Print what to delete, once there are no VMs:\n  selfsame uninstall --kubeconfig admin.kubeconfig',
    flags: uninstallFlags,
    args: 0,
    run: ({ flags, env }) => uninstall(flags, env),
  }),
  defineCommand({
    name: 'join',
    usage: '',
    summary: 'Write the kubeconfig for controllers or a node to join a cluster.',
    example: [
      '  # Write a kubeconfig for selfsame controllers, and one for a node:',
      '  selfsame join --as controllers --kubeconfig admin.kubeconfig --out controllers.kubeconfig',
      '  selfsame join --as node --name host-7 --kubeconfig admin.kubeconfig --out host-7.kubeconfig',
    ].join('\n'),
    flags: joinFlags,
    args: 0,
    async run({ flags, env }) {
      if (flags.engineDataDir !== undefined && flags.as !== 'node') {
        throw new UsageError('--engine-data-dir requires --as node');
      }
      return await joinCluster(flags, env);
    },
  }),
  defineCommand({
    name: 'controllers',
    usage: '',
    summary:
      'Run webhook, aggregated API, operator and controllers for an existing cluster; of several replicas one leads.',
    example:
      '  # Run the controllers; with several replicas, one leads:\n  selfsame controllers --kubeconfig controllers.kubeconfig --webhook-port 9443',
    flags: controllersFlags,
    args: 0,
    run: ({ flags, env }) => controllers(flags, env),
  }),
  defineCommand({
    name: 'host',
    usage: 'VERB ...',
    summary: 'Call the host API of a node; selfsame host help lists its verbs.',
    example: [
      '  # List the verbs, and the VMs of a node:',
      '  selfsame host help',
      '  selfsame host --node node-1 list',
    ].join('\n'),
    flags: hostFlags,
    args: [0, Infinity],
    // Words after the verb belong to it, such as a --help of its own.
    interspersed: false,
    completes: [['help', ...HOST_VERBS]],
    run: ({ flags, args }) => host(flags, args),
  }),
  defineCommand({
    name: 'audit',
    usage: '',
    summary: 'Show who changed what and who was refused, from the audit log of a server.',
    details:
      '--user, --verb, --resource, --namespace and --name accept several values, separated by commas or as several flags.',
    example: [
      '  # Show who changed VMs in the last 24 hours:',
      '  selfsame audit --resource virtualmachines --since 24h',
      '',
      '  # Follow refused requests:',
      '  selfsame audit --refused --follow',
    ].join('\n'),
    flags: auditReaderFlags,
    args: 0,
    run: ({ flags }) => audit(flags),
  }),
  defineCommand({
    name: 'tour',
    usage: '',
    summary: 'Show on a real guest that a VM keeps its identity; takes a few minutes and cleans up.',
    details: [
      'Creates a VM with EFI and a TPM, restarts it, plugs disks, migrates, restores a snapshot, changes its machine type,',
      'and asks the guest itself after each step. Exit code 0: it is the selfsame machine; 1: it is not, or the tour could',
      'not finish. Needs two nodes. Ctrl-C stops the tour and cleans up.',
    ].join('\n'),
    example: [
      '  # Use the running plane, or start a temporary one:',
      '  selfsame tour',
      '',
      '  # Use another plane:',
      '  selfsame tour --kubeconfig /tmp/second/kubeconfig',
    ].join('\n'),
    flags: tourFlags,
    args: 0,
    run: ({ flags, env }) => tour(flags, env),
  }),
  defineCommand({
    name: 'tour-plane',
    usage: '',
    summary: 'Run the temporary plane of selfsame tour.',
    details: 'At the end of its standard input, it stops and removes guests and data directory.',
    example: '  # Run a plane until the end of the input:\n  selfsame tour-plane --data-dir /tmp/selfsame-tour-1',
    flags: upFlags,
    args: 0,
    hidden: true,
    run: ({ flags, env }) => tourPlane(flags, env),
  }),
  defineCommand({
    name: 'doctor',
    usage: '',
    summary: 'Check this machine: what works, what is missing, and how to fix it.',
    details: 'Changes nothing. Exit code 0: VMs can run here; 1: something that they need is missing.',
    example: [
      '  # Check whether VMs can run on this machine:',
      '  selfsame doctor',
      '',
      '  # Print the result as JSON:',
      '  selfsame doctor --output json',
    ].join('\n'),
    flags: doctorFlags,
    args: 0,
    run: ({ flags, env }) => doctor(flags, env),
  }),
  defineCommand({
    name: 'backup',
    usage: '',
    summary: 'Back up the engine (all objects and keys), running or stopped.',
    details: 'Disks and TPM state of guests are not included; see docs/operations.md for how to back them up.',
    example: '  # Back up a running plane:\n  selfsame backup --to /backup/selfsame-monday.tar.gz',
    flags: backupFlags,
    args: 0,
    run: ({ flags }) => backup(flags),
  }),
  defineCommand({
    name: 'restore-backup',
    usage: '',
    summary: 'Restore a backup into a data directory that no server uses.',
    details: 'Existing data is moved to replaced-TIME in the data directory.',
    example: '  # Restore a stopped plane:\n  selfsame restore-backup --from /backup/selfsame-monday.tar.gz',
    flags: restoreBackupFlags,
    args: 0,
    run: ({ flags }) => runRestoreBackup(flags),
  }),
  defineCommand({
    name: 'update-machine-types',
    usage: '',
    summary: 'Change the machine types of VMs as a Job; virtctl update machine-types creates such Jobs.',
    details: [
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
    ].join('\n'),
    example: "  # Clear old machine types:\n  JOB_GLOB='*rhel8.*' selfsame update-machine-types",
    flags: transitionFlags,
    args: 0,
    hidden: true,
    run: ({ flags, env }) => runMachineTypeUpdate(flags, env),
  }),
  defineCommand({
    name: 'version',
    usage: '',
    summary: 'Print the version.',
    example: '  # Print the versions of selfsame and Node.js:\n  selfsame version',
    flags: {},
    args: 0,
    async run({ stdout }) {
      stdout.write(`selfsame ${VERSION} (node ${process.versions.node})\n`);
    },
  }),
  defineCommand({
    name: 'completion',
    usage: SHELLS.join('|'),
    summary: 'Print a shell completion script for selfsame.',
    example: completionExample('selfsame'),
    flags: {},
    args: 1,
    completes: [SHELLS],
    async run({ args: [word], stdout }) {
      const shell = SHELLS.find((one) => one === word);
      if (shell === undefined) throw new UsageError(`completion needs one of ${SHELLS.join(', ')}`);
      stdout.write(completionScript(shell, 'selfsame'));
    },
  }),
  defineCommand({
    name: '__complete',
    usage: 'WORD ...',
    summary: 'Print the completions of the last word, for the scripts of selfsame completion.',
    example: "  # Print the completions of 'selfsame u':\n  selfsame __complete u",
    flags: {},
    args: [0, Infinity],
    hidden: true,
    takesAll: true,
    async run({ args, stdout }) {
      stdout.write(completionLines(completeWords(commandTree(selfsameTable), args)));
    },
  }),
];

export const selfsameTable: ProgramTable<SelfsameContext, { readonly help: ReturnType<typeof switchFlag> }> = {
  name: 'selfsame',
  intro: 'runs virtual machines and preserves the identity of each one.',
  commands,
  shared: { help: switchFlag({ name: 'help', short: 'h', help: 'help for the command' }) },
};

/** Refuses address flags without --kubeconfig: nodes of the embedded engine are on this machine. Throws UsageError. */
function checkNodeFlags({ kubeconfig, address, nodeIp, hostname }: NodeOptions): void {
  const given = Object.entries({ address, 'node-ip': nodeIp, hostname }).find(([, value]) => value !== undefined);
  if (kubeconfig === undefined && given !== undefined) throw new UsageError(`--${given[0]} needs --kubeconfig`);
}
