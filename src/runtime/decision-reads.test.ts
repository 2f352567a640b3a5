/** Controllers that read a kind whose changes do not trigger them, on a fake API. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Informer } from '#client/informer.ts';
import { FakeApi } from '#client/testing/fake-api.ts';
import { FakeClock, settle } from '#lib/testing/fake-clock.ts';
import { FakeLink } from '#client/testing/fake-link.ts';
import { GADGETS, aGadget, type Gadget } from '#client/testing/gadgets.ts';
import type { ResourceType, Stored } from '#kube/meta.ts';
import { createLog } from '#lib/log.ts';
import { presenceOnly, recheckedSource, source, startController, type Source } from '#runtime/controller.ts';
import { ANY_KIND, ReadRules, type Recheck } from '#runtime/decision-reads.ts';

/** A gadget reports the number of widgets. */
const WIDGETS: ResourceType<Gadget> = { ...GADGETS, kind: 'Widget', plural: 'widgets' };

interface World {
  readonly gadget: Stored<Gadget>;
  readonly widgets: number;
}

interface SetUpOptions {
  /** The sources for widgets. */
  readonly sources?: (widgets: Informer<Gadget>, gadgets: Informer<Gadget>) => readonly Source[];
  readonly rechecks?: readonly Recheck[];
  /** Reads widgets in `decide` instead of `observe`. */
  readonly late?: boolean;
}

const everyGadget = (gadgets: Informer<Gadget>) => () =>
  gadgets.list().map(({ metadata }) => `${metadata.namespace}/${metadata.name}`);

async function setUp({ sources = () => [], rechecks, late = false }: SetUpOptions) {
  const api = new FakeApi();
  const clock = new FakeClock();
  const link = new FakeLink(api, [GADGETS, WIDGETS]);
  api.put(GADGETS, aGadget('a'));
  const abort = new AbortController();
  const { signal } = abort;
  const lines: string[] = [];
  const log = createLog('info', { write: (line) => lines.push(line) });
  const informerOf = (type: ResourceType<Gadget>) => new Informer({ reader: link.client, type, clock, log });
  const [gadgets, widgets] = [informerOf(GADGETS), informerOf(WIDGETS)];
  const running = startController<World>(
    {
      name: 'counter',
      type: GADGETS,
      sources: [source(gadgets), ...sources(widgets, gadgets)],
      ...(rechecks === undefined ? {} : { rechecks }),
      observe(key) {
        const gadget = gadgets.get(key);
        return gadget && { gadget, widgets: late ? 0 : widgets.list().length };
      },
      decide(world) {
        return { changes: [], status: { phase: `${late ? widgets.list().length : world.widgets} widgets` } };
      },
      subject: ({ gadget }) => gadget,
    },
    { client: link.client, clock, log, signal },
  );
  for (const informer of [gadgets, widgets]) void informer.start({ signal });
  await running.idle();
  await settle();
  return {
    running,
    clock,
    lines,
    async addWidget() {
      api.put(WIDGETS, { ...aGadget('w'), kind: 'Widget' });
      await settle();
      await running.idle();
    },
    async labelWidget() {
      const widget = { ...aGadget('w'), kind: 'Widget' };
      api.put(WIDGETS, { ...widget, metadata: { ...widget.metadata, labels: { seen: 'now' } } });
      await settle();
      await running.idle();
    },
    phase: () => (api.peek(GADGETS, 'default/a')?.status as { phase?: string } | undefined)?.phase,
    async stop() {
      abort.abort();
      await running.stopped;
    },
  };
}

describe('a read of a kind whose changes do not trigger the controller', () => {
  for (const late of [false, true]) {
    it(`in ${late ? 'decide' : 'observe'} is detected, with instructions`, async () => {
      const scene = await setUp({ late });
      const [missed = ''] = await scene.running.findOverdue!();
      assert.match(
        missed,
        /^Controller "counter" reads widgets\.test\.local, but their changes do not trigger it; add/,
      );
      assert.match(missed, /add source\(.*or add a Recheck/);
      assert.deepEqual(scene.running.violations, [missed]);
      assert.equal(scene.lines.filter((line) => line.includes('reads widgets.test.local')).length, 1, 'logged once');
      await scene.addWidget();
      assert.equal(scene.phase(), '0 widgets');
      await scene.clock.advance(60_000);
      assert.equal(scene.phase(), '1 widgets', 'the change is still noticed within a minute');
      await scene.stop();
    });
  }

  it('is allowed if a Recheck repeats it in time', async () => {
    const because = 'for the test';
    for (const options of [
      { sources: (widgets: Informer<Gadget>) => [recheckedSource(widgets, { everyMs: 5000, because })] },
      { rechecks: [{ type: WIDGETS, everyMs: 5000, because }] },
      { rechecks: [{ type: ANY_KIND, everyMs: 5000, because } as const] },
    ] satisfies SetUpOptions[]) {
      const scene = await setUp(options);
      await scene.addWidget();
      assert.equal(scene.phase(), '0 widgets');
      assert.deepEqual(await scene.running.findOverdue!(), [], 'it is reconciled again soon');
      await scene.clock.advance(5000);
      assert.equal(scene.phase(), '1 widgets');
      await scene.stop();
    }
  });

  it('cannot have a Recheck that is too long or has no reason', () => {
    const rules = (recheck: Partial<Recheck>) => () =>
      new ReadRules({
        name: 'counter',
        followed: [],
        rechecks: [{ type: WIDGETS, everyMs: 1000, because: 'x', ...recheck }],
      });
    assert.throws(rules({ everyMs: 300_000 }), /within 60000 ms/);
    assert.throws(rules({ because: '' }), /says why/);
    assert.doesNotThrow(rules({}));
  });
});

describe('a source', () => {
  it('that enqueues the right keys leaves nothing overdue', async () => {
    const scene = await setUp({ sources: (widgets, gadgets) => [source(widgets, everyGadget(gadgets))] });
    await scene.addWidget();
    assert.equal(scene.phase(), '1 widgets');
    assert.deepEqual(await scene.running.findOverdue!(), []);
    assert.deepEqual([...scene.running.kindsRead!].sort(), ['gadgets.test.local', 'widgets.test.local']);
    await scene.stop();
  });

  it('that enqueues the wrong keys is detected', async () => {
    const scene = await setUp({ sources: (widgets) => [source(widgets, () => ['default/another'])] });
    assert.deepEqual(await scene.running.findOverdue!(), []);
    await scene.addWidget();
    assert.deepEqual(await scene.running.findOverdue!(), ['counter default/a: write status']);
    assert.equal(scene.phase(), '0 widgets', 'nothing was written');
    await scene.stop();
  });

  it('with a part enqueues if that part changes or an object is created, and not otherwise', async () => {
    let enqueued = 0;
    const keysOf = (gadgets: Informer<Gadget>) => () => {
      enqueued++;
      return everyGadget(gadgets)();
    };
    const scene = await setUp({
      sources: (widgets, gadgets) => [source(widgets, keysOf(gadgets), { part: presenceOnly })],
    });
    await scene.addWidget();
    assert.deepEqual([enqueued, scene.phase()], [1, '1 widgets']);
    await scene.labelWidget();
    assert.equal(enqueued, 1);
    await scene.stop();
  });
});
