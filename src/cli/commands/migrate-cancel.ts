/** virtctl migrate-cancel */
import { isFinalPhase, VIRTUAL_MACHINE_INSTANCE_MIGRATIONS } from '#api/virtual-machine-instance-migration/kind.ts';
import { defineCommand } from '#cli/parsing/command.ts';
import { CommandError } from '#cli/parsing/flags.ts';
import { errorMessage } from '#lib/error-message.ts';
import { listMigrations } from '#cli/verbs/migrations.ts';
import { objectPath } from '#client/resource-path.ts';

export const migrateCancel = defineCommand({
  name: 'migrate-cancel',
  usage: '(VM)',
  summary: 'Cancel migration of a virtual machine.',
  details: 'The guest stays on its node, unless the migration has already completed.',
  example: "  # Cancel the migration of a virtual machine called 'myvm':\n  virtctl migrate-cancel myvm",
  flags: {},
  args: 1,
  async run({ args: [vm = ''], connect, print, terminal }) {
    const api = await connect();
    const report = (line: string) => void terminal.stderr.write(`${line}\n`);
    const active = (await listMigrations(api, vm, report)).find(({ status }) => !isFinalPhase(status?.phase));
    if (active === undefined) throw new CommandError(`Found no migration to cancel for ${vm}`);
    const { namespace, name, uid } = active.metadata;
    try {
      await api.remove(objectPath(VIRTUAL_MACHINE_INSTANCE_MIGRATIONS, { namespace, name }), uid);
    } catch (cause) {
      const what = `Error canceling migration ${name} of a VirtualMachine ${vm}`;
      throw new CommandError(`${what}: ${errorMessage(cause)}`, { cause });
    }
    print(`Migration ${name} of VM ${vm} is being canceled`);
  },
});
