/** A stand-in for the node agent: reports of pods what a test wants to have happened to them. */
import type { Clock } from '#lib/clock.ts';
import { timestamp } from '#lib/clock.ts';
import type { Loose, TestApi } from '#test/support/test-api.ts';

export interface FailOptions {
  /** Which container failed; the first one if not said. */
  readonly container?: string;
  /** Besides those that a failed pod has: `DisruptionTarget`, for instance. */
  readonly conditions?: readonly { type: string; status: string; reason?: string }[];
}

export interface PodRunner {
  /** Running and ready; with so many restarts of its first container. */
  run(pod: Loose, restarts?: number): Promise<Loose>;
  succeed(pod: Loose): Promise<Loose>;
  fail(pod: Loose, exitCode?: number, options?: FailOptions): Promise<Loose>;
}

export function createPodRunner(api: Pick<TestApi, 'ok'>, clock: Clock): PodRunner {
  const report = (pod: Loose, status: Loose): Promise<Loose> => {
    const { namespace, name } = pod.metadata;
    return api.ok('PATCH', `/api/v1/namespaces/${namespace}/pods/${name}/status`, { body: { status } });
  };
  const containers = (pod: Loose, stateOf: (name: string) => Loose, restartCount = 0): Loose[] =>
    pod.spec.containers.map(({ name, image }: Loose, at: number) => {
      const state = stateOf(name);
      const ready = state.running !== undefined;
      return { name, image, imageID: '', ready, restartCount: at === 0 ? restartCount : 0, state };
    });
  const ended = (pod: Loose, phase: string, exitCodeOf: (name: string) => number, conditions: Loose[] = []) => {
    const now = timestamp(clock.now());
    return report(pod, {
      phase,
      conditions: [{ type: 'Ready', status: 'False', lastTransitionTime: now }, ...conditions],
      containerStatuses: containers(pod, (name) => ({ terminated: { exitCode: exitCodeOf(name), finishedAt: now } })),
    });
  };
  return {
    run(pod, restarts = 0) {
      const now = timestamp(clock.now());
      return report(pod, {
        phase: 'Running',
        conditions: [{ type: 'Ready', status: 'True', lastTransitionTime: now }],
        containerStatuses: containers(pod, () => ({ running: { startedAt: now } }), restarts),
      });
    },
    succeed: (pod) => ended(pod, 'Succeeded', () => 0),
    fail(pod, exitCode = 1, { container = pod.spec.containers[0].name, conditions = [] } = {}) {
      return ended(pod, 'Failed', (name) => (name === container ? exitCode : 0), [...conditions]);
    },
  };
}
