/**
 * A plane in memory in which migrations run to their end, with simple versions of the scheduler, the agents and the
 * controller of instances. The migration controller can crash after any write.
 */
import { isMigrating, type MigrationProgress } from '#api/migration/migration-state.ts';
import { MIGRATION_ABORTED_REASON, MIGRATION_COMMITTED_CONDITION, MIGRATED_REASON } from '#api/names.ts';
import { VIRTUAL_MACHINE_INSTANCE_MIGRATIONS } from '#api/virtual-machine-instance-migration/kind.ts';
import { VIRTUAL_MACHINE_INSTANCES, type VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import { keyOf } from '#client/object-key.ts';
import { concludeMigration } from '#controllers/migration/begin.ts';
import { decideMigration } from '#controllers/migration/decide-migration.ts';
import type { MigrationWorld } from '#controllers/migration/migration-world.ts';
import { CrashingPlane } from '#controllers/shared/testing/crashing-plane.ts';
import { NOW_MS, TARGET } from '#controllers/migration/testing/migration-world.ts';
import { createMigrationObserver } from '#controllers/migration/observe-migration.ts';
import { PODS, type Pod } from '#kube/core-kinds.ts';
import { deepEqual } from '#kube/deep.ts';
import type { ResourceType, Stored } from '#kube/meta.ts';

/** The fate of the guest after the announcement; `silent`: no agent reports anything. */
export type GuestFate = 'commits' | 'fails' | 'guest-ends' | 'silent';

export class MigrationPlane extends CrashingPlane<MigrationWorld> {
  fate: GuestFate = 'commits';

  constructor() {
    super(
      {
        type: VIRTUAL_MACHINE_INSTANCE_MIGRATIONS,
        createObserver: createMigrationObserver,
        subjectOf: ({ migration }) => migration,
        decide: decideMigration,
        conclude: concludeMigration,
      },
      NOW_MS,
    );
  }

  protected override runOthers(): void {
    this.#schedule();
    for (const vmi of this.api.all(VIRTUAL_MACHINE_INSTANCES)) this.#stepAgents(vmi);
  }

  #schedule(): void {
    for (const pod of this.api.all(PODS)) {
      if (!pod.spec.nodeName) this.api.update(PODS, { ...pod, spec: { ...pod.spec, nodeName: TARGET } });
    }
  }

  /** Does one step of the agents and of the controller of instances. */
  #stepAgents(vmi: Stored<VirtualMachineInstance>): void {
    const { migrationState: state, migrationProgress: progress } = vmi.status ?? {};
    if (state?.migrationUid === undefined) return;
    const { namespace } = vmi.metadata;
    const podOf = (name = '') => this.api.peek(PODS, keyOf({ namespace, name }));
    const [source, target] = [podOf(state.sourcePod), podOf(state.targetPod)];
    if (!isMigrating(state)) {
      const nodeName = state.failed === true ? state.sourceNode : state.targetNode;
      return this.#writeStatus(VIRTUAL_MACHINE_INSTANCES, vmi, { ...vmi.status, nodeName });
    }
    if (source === undefined || target === undefined || this.fate === 'silent') return;
    const report = (phase: MigrationProgress['phase'], message?: string) => {
      const migrationProgress = { migrationUid: state.migrationUid, phase, ...(message ? { message } : {}) };
      this.#writeStatus(VIRTUAL_MACHINE_INSTANCES, vmi, { ...vmi.status, migrationProgress });
    };
    if (target.status?.phase !== 'Running') {
      if (target.status?.phase !== 'Failed') this.#writeStatus(PODS, target, { phase: 'Running' });
      return;
    }
    const phase = progress?.migrationUid === state.migrationUid ? progress?.phase : undefined;
    if (phase === undefined) return report('Copying');
    if (phase !== 'Copying') return;
    if (state.abortRequested === true) return report('Failed', 'aborted on request');
    if (this.fate === 'commits') return this.#commit(source, target, state.migrationUid);
    if (this.fate === 'fails') {
      this.#writeStatus(PODS, target, { phase: 'Failed', reason: MIGRATION_ABORTED_REASON });
      return report('Failed', 'the stream broke');
    }
    this.#writeStatus(PODS, source, { phase: 'Succeeded' });
  }

  #commit(source: Stored<Pod>, target: Stored<Pod>, message: string): void {
    const committed = { type: MIGRATION_COMMITTED_CONDITION, status: 'True' as const, message };
    this.#writeStatus(PODS, source, { phase: 'Succeeded', reason: MIGRATED_REASON, conditions: [committed] });
    const ready = { type: 'Ready', status: 'True' as const };
    this.#writeStatus(PODS, target, { phase: 'Running', conditions: [committed, ready] });
  }

  #writeStatus(type: ResourceType, object: Stored, status: object): void {
    if (deepEqual(object['status'], status)) return;
    const { resourceVersion: _, ...metadata } = object.metadata;
    this.api.update(type, { ...object, metadata, status }, { subresource: 'status' });
  }
}
