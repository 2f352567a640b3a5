/**
 * Runs controllers on a FakeApi while their cache of one kind is behind: it keeps the objects of the start, as while the
 * watch of that kind is interrupted and those of the other kinds are not.
 */
import type { TestContext } from 'node:test';
import type { Reader } from '#client/client.ts';
import { FakeApi } from '#client/testing/fake-api.ts';
import { FakeLink } from '#client/testing/fake-link.ts';
import { groupResource, type ResourceType } from '#kube/meta.ts';
import { silentLog } from '#lib/log.ts';
import { MetricRegistry } from '#lib/metrics/metric-registry.ts';
import { FakeClock, settle } from '#lib/testing/fake-clock.ts';
import type { ControllerParts } from '#runtime/controller-parts.ts';
import type { RunningController } from '#runtime/controller.ts';
import { noEvents } from '#runtime/events.ts';
import { SharedInformers } from '#runtime/shared-informers.ts';

interface LaggingControllers {
  readonly api: FakeApi;
  readonly clock: FakeClock;
  /** Resolves when the controllers have nothing left to do. */
  rest(): Promise<void>;
}

interface LaggingOptions {
  /** All kinds that the controllers use. */
  readonly types: readonly ResourceType[];
  /** The kind whose cache is behind. */
  readonly lagging: ResourceType;
  /** Creates the objects that the lagging cache has. */
  readonly prepare?: (api: FakeApi) => void;
}

type Start = (parts: ControllerParts) => RunningController | readonly RunningController[];

export async function startLagging(
  t: TestContext,
  start: Start,
  { types, lagging, prepare }: LaggingOptions,
): Promise<LaggingControllers> {
  const api = new FakeApi();
  prepare?.(api);
  const { client } = new FakeLink(api, types);
  const clock = new FakeClock();
  const abort = new AbortController();
  const { signal } = abort;
  const common = { clock, log: silentLog, signal };
  const informers = new SharedInformers({ ...common, reader: withoutEvents(client, lagging) });
  const informer: ControllerParts['informer'] = (type) => informers.of(type);
  const running = [start({ ...common, client, informer, events: noEvents, metrics: new MetricRegistry() })].flat();
  t.after(async () => {
    abort.abort();
    await Promise.all(running.map(({ stopped }) => stopped));
  });
  const rest = async () => {
    await settle();
    for (const controller of running) await controller.idle();
    await settle();
  };
  await rest();
  return { api, clock, rest };
}

/** Returns the reader with a watch of the kind that never delivers anything. */
function withoutEvents(reader: Reader, lagging: ResourceType): Reader {
  return {
    ...reader,
    get: reader.get.bind(reader),
    list: reader.list.bind(reader),
    watch: (type, options) =>
      groupResource(type) === groupResource(lagging) ? silence(options?.signal) : reader.watch(type, options),
  };
}

function silence(signal: AbortSignal | undefined): AsyncIterable<never> {
  const ended = new Promise<IteratorReturnResult<undefined>>((resolve) =>
    signal?.addEventListener('abort', () => resolve({ done: true, value: undefined }), { once: true }),
  );
  return { [Symbol.asyncIterator]: () => ({ next: () => ended }) };
}
