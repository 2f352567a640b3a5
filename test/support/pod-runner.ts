/** Stands in for the node agent: reports the pod status that a test chooses. */
import type { Clock } from '#lib/clock.ts';
import { timestamp } from '#lib/clock.ts';
import type { Loose, TestApi } from '#test/support/test-api.ts';

export interface FailOptions {
  /** The container that fails; the first one by default. */
  readonly container?: string;
  /** Conditions in addition to those of every failed pod, for example `DisruptionTarget`. */
  readonly conditions?: readonly { type: string; status: string; reason?: string }[];
}

export interface PodRunner {
  /** Reports the pod as running and ready, with this many restarts of its first container. */
  run(pod: Loose, restarts?: number): Promise<Loose>;
  succeed(pod: Loose): Promise<Loose>;
  fail(pod: Loose, exitCode?: number, options?: FailOptions): Promise<Loose>;
}

export function createPodRunner(api: Pick<TestApi, 'ok'>, clock: Clock): PodRunner {
  const patchStatus = (pod: Loose, status: Loose): Promise<Loose> => {
    const { namespace, name } = pod.metadata;
    return api.ok('PATCH', `/api/v1/namespaces/${namespace}/pods/${name}/status`, { body: { status } });
  };
  const containers = (pod: Loose, stateOf: (name: string) => Loose, restartCount = 0): Loose[] =>
    pod.spec.containers.map(({ name, image }: Loose, index: number) => {
      const state = stateOf(name);
      const ready = state.running !== undefined;
      return { name, image, imageID: '', ready, restartCount: index === 0 ? restartCount : 0, state };
    });
  const reportEnd = (pod: Loose, phase: string, exitCodeOf: (name: string) => number, conditions: Loose[] = []) => {
    const now = timestamp(clock.now());
    return patchStatus(pod, {
      phase,
      conditions: [{ type: 'Ready', status: 'False', lastTransitionTime: now }, ...conditions],
      containerStatuses: containers(pod, (name) => ({ terminated: { exitCode: exitCodeOf(name), finishedAt: now } })),
    });
  };
  return {
    run(pod, restarts = 0) {
      const now = timestamp(clock.now());
      return patchStatus(pod, {
        phase: 'Running',
        conditions: [{ type: 'Ready', status: 'True', lastTransitionTime: now }],
        containerStatuses: containers(pod, () => ({ running: { startedAt: now } }), restarts),
      });
    },
    succeed: (pod) => reportEnd(pod, 'Succeeded', () => 0),
    fail(pod, exitCode = 1, { container = pod.spec.containers[0].name, conditions = [] } = {}) {
      return reportEnd(pod, 'Failed', (name) => (name === container ? exitCode : 0), [...conditions]);
    },
  };
}
