/** virtctl migrate and migrate-cancel */
import { isFinalPhase, VIRTUAL_MACHINE_INSTANCE_MIGRATIONS } from '#api/virtual-machine-instance-migration/kind.ts';
import { objectPath } from '#client/resource-path.ts';
import { defineCommand } from '#cli/command.ts';
import { dryRunFlag, dryRunOption } from '#cli/dry-run.ts';
import { CommandError, explainFailure } from '#lib/command-line/command-error.ts';
import { pairsFlag } from '#lib/command-line/flag.ts';
import { COPY_TIMEOUT, waitFlags, waitLimitMs } from '#cli/wait/wait-flags.ts';
import { resultLine, followMigration, listMigrations } from '#cli/commands/migrate/migrations.ts';
import { verbPath } from '#cli/connection/verb-path.ts';

export const migrate = defineCommand({
  name: 'migrate',
  usage: '(VM)',
  summary: 'Migrate a virtual machine.',
  details: 'The guest keeps running during the migration. Use virtctl migrate-cancel to cancel it.',
  example: [
    "  # Migrate a virtual machine called 'myvm':",
    '  virtctl migrate myvm',
    '',
    '  # Migrate to a node with a label, and show progress until the migration ends:',
    '  virtctl migrate myvm --addedNodeSelector zone=b --wait --timeout=30m',
  ].join('\n'),
  flags: {
    addedNodeSelector: pairsFlag(
      {
        name: 'addedNodeSelector',
        help: '--addedNodeSelector=key1=value1,key2=value2: Labels that the target node must have, in addition to the node selector of the virtual machine.',
      },
      'stringToString',
    ),
    ...waitFlags('the migration ends', COPY_TIMEOUT),
    dryRun: dryRunFlag,
  },
  args: 1,
  async run({ args: [name = ''], flags, connect, print, report, status }) {
    const { addedNodeSelector, dryRun } = flags;
    const limitMs = waitLimitMs(flags, COPY_TIMEOUT);
    const api = await connect();
    const selector = addedNodeSelector === undefined ? {} : { addedNodeSelector };
    const body = { ...selector, ...dryRunOption(dryRun, print) };
    const before =
      limitMs === undefined || dryRun
        ? undefined
        : new Set((await listMigrations(api, name, report)).map(({ metadata }) => metadata.uid));
    const path = verbPath('virtualmachines', api.namespace, name, 'migrate');
    await explainFailure(`Cannot migrate VM ${name}: `, api.put(path, body));
    print(`VM ${name} was scheduled to migrate`);
    if (limitMs === undefined || before === undefined) return;
    const migration = (await listMigrations(api, name, report)).find(({ metadata }) => !before.has(metadata.uid));
    if (migration === undefined)
      throw new CommandError(`Cannot follow the migration of VM ${name}: it was already deleted`);
    print(
      resultLine(name, await followMigration(api, { vm: name, name: migration.metadata.name }, { limitMs, status })),
    );
  },
});

export const migrateCancel = defineCommand({
  name: 'migrate-cancel',
  usage: '(VM)',
  summary: 'Cancel migration of a virtual machine.',
  details: 'The guest stays on its node, unless the migration has already completed.',
  example: "  # Cancel the migration of a virtual machine called 'myvm':\n  virtctl migrate-cancel myvm",
  flags: {},
  args: 1,
  async run({ args: [vm = ''], connect, print, report }) {
    const api = await connect();
    const active = (await listMigrations(api, vm, report)).find(({ status }) => !isFinalPhase(status?.phase));
    if (active === undefined) throw new CommandError(`Cannot cancel the migration of VM ${vm}: it is not migrating`);
    const { namespace, name, uid } = active.metadata;
    const removal = api.remove(objectPath(VIRTUAL_MACHINE_INSTANCE_MIGRATIONS, { namespace, name }), uid);
    await explainFailure(`Cannot cancel migration ${name} of VM ${vm}: `, removal);
    print(`Migration ${name} of VM ${vm} is being canceled`);
  },
});
