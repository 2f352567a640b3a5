/** Carries out the actions of decide-outgoing.ts and decide-incoming.ts. Long ones continue in the background. */
import { invariant, unreachable } from '#lib/invariant.ts';
import type { DomainActionParts } from '#node/domains/domain-action-parts.ts';
import type { DomainAction } from '#node/domains/domain-action.ts';
import type { DomainWorld } from '#node/domains/domain-world.ts';

type MigrationAction = Extract<
  DomainAction,
  { readonly do: 'migrate' | 'abortMigration' | 'takeBack' | 'destroyStale' | 'leave' | 'commit' | 'queryOutcome' }
>;

/** Reports whether the action changed the domain. */
export async function actOnMigration(
  id: string,
  action: MigrationAction,
  { vmi, domain }: DomainWorld,
  { hypervisor, migrations, events, node, log }: DomainActionParts,
): Promise<boolean> {
  switch (action.do) {
    case 'migrate':
      invariant(vmi !== undefined, 'only the guest of an instance migrates');
      migrations.startSending(vmi);
      return false;
    case 'abortMigration':
      log.info({ domain: id, why: action.why }, 'Aborting the migration of a guest');
      migrations.abort(id, action.why);
      return false;
    case 'takeBack':
      await hypervisor.abortMigration(id);
      return true;
    case 'destroyStale': {
      const message = `The guest on node ${node.name} is switched off, because it now belongs to node ${action.to}.`;
      log.warn({ domain: id, to: action.to }, 'Switching off a guest that now belongs to another node');
      await hypervisor.destroy(id);
      if (vmi !== undefined) events.record(vmi, { type: 'Warning', reason: 'GuestGivenUp', message });
      return true;
    }
    case 'leave':
      await hypervisor.leave(id);
      return true;
    case 'commit':
      await hypervisor.commit(id);
      migrations.recordResumed(id, domain?.migration?.uid);
      return true;
    case 'queryOutcome':
      invariant(domain !== undefined, 'a stored guest has a domain');
      migrations.queryOutcome(domain);
      return false;
    default:
      return unreachable(action);
  }
}
