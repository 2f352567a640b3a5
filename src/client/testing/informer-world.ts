/** An informer on a fake API, with the changes that its listener has seen. */
import { Informer } from '#client/informer.ts';
import type { InformerOptions } from '#client/informer.ts';
import { FakeApi } from '#client/testing/fake-api.ts';
import { FakeClock } from '#lib/testing/fake-clock.ts';
import { FakeLink } from '#client/testing/fake-link.ts';
import { GADGETS } from '#client/testing/gadgets.ts';
import type { Gadget } from '#client/testing/gadgets.ts';
import { silentLog } from '#lib/log.ts';

export function startInformer(options: Partial<InformerOptions<Gadget>> = {}) {
  const api = new FakeApi();
  const clock = new FakeClock();
  const link = new FakeLink(api, [GADGETS]);
  const reader = link.client;
  const informer = new Informer({ reader, type: GADGETS, clock, log: silentLog, random: () => 0.5, ...options });
  /** `a@3` for a state, `-a` for a deletion. */
  const seen: string[] = [];
  informer.onChange((key, change) => {
    const name = key.replace('default/', '');
    seen.push(change.new === undefined ? `-${name}` : `${name}@${change.new.metadata.resourceVersion}`);
  });
  const controller = new AbortController();
  const stopped = informer.start({ signal: controller.signal });
  const stop = async (): Promise<void> => {
    controller.abort();
    await stopped;
  };
  return { api, clock, link, informer, seen, stop };
}
