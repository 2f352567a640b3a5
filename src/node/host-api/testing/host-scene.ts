/** A host API over simulated guests, with a directory of its own; the next one finds the guests of the one before. */
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type { TestContext } from 'node:test';
import type { HostAnswer, HostVerb, HostVm } from '#api/host-api.ts';
import { FakeClock } from '#client/testing/fake-clock.ts';
import { silentLog } from '#lib/log.ts';
import { DeviceBook } from '#node/domains/device-book.ts';
import { Turns } from '#node/domains/turns.ts';
import type { HostApi } from '#node/endpoint/endpoint-agent.ts';
import { AgentReader } from '#node/guest-agent/agent-reader.ts';
import { openHostApi } from '#node/host-api/host-api.ts';
import { createFakeHypervisor, type FakeHypervisor } from '#node/hypervisor/fake/fake-hypervisor.ts';

export const VM_ID = '27c61cea-f4fd-47e9-84e8-d1598f32ccc0';

/** The least that a VM must say of itself. */
export const aVm = { vmId: VM_ID, memSize: 512, display: 'vnc' };

export interface HostScene {
  /** Where images are. */
  readonly dir: string;
  readonly clock: FakeClock;
  hypervisor(): FakeHypervisor;
  api(): HostApi;
  /** Resolves when every guest agent that is connected was asked. */
  agentsRead(): Promise<void>;
  /** A file below host-images, with some bytes in it. */
  image(path: string, content?: string | Buffer): string;
  call(verb: HostVerb, parameters?: Readonly<Record<string, unknown>>, signal?: AbortSignal): Promise<HostAnswer>;
  /** `0 Done`, as people see it. */
  status(verb: HostVerb, parameters?: Readonly<Record<string, unknown>>): Promise<string>;
  /** The VM as list tells it. */
  vm(vmId?: string): Promise<HostVm>;
  /** The agent is gone without a word; the next one finds what it left. */
  restart(): Promise<void>;
}

export async function startHostScene(t: TestContext): Promise<HostScene> {
  const dir = realpathSync(mkdtempSync(join(tmpdir(), 'host-api-')));
  const images = join(dir, 'host-images');
  t.after(() => rmSync(dir, { recursive: true, force: true }));
  const clock = new FakeClock();
  const start = async (host?: FakeHypervisor['host']) => {
    const hypervisor = createFakeHypervisor({ clock, ...(host === undefined ? {} : { host }) });
    await hypervisor.adopt();
    const agents = new AgentReader({ hypervisor, clock, log: silentLog });
    t.after(() => agents.stop());
    const api = await openHostApi({
      dir,
      guestUser: undefined,
      devDir: join(dir, 'dev'),
      hypervisor,
      book: new DeviceBook({ hypervisor, clock }),
      agents,
      turns: new Turns(),
      capabilities: await hypervisor.capabilities(),
      clock,
      log: silentLog,
    });
    return { hypervisor, api, agents };
  };
  let running = await start();
  const call: HostScene['call'] = (verb, parameters = {}, signal = new AbortController().signal) =>
    running.api.call(verb, parameters, { signal });
  return {
    dir: images,
    clock,
    hypervisor: () => running.hypervisor,
    api: () => running.api,
    agentsRead: () => running.agents.idle(),
    image(path, content = 'some bytes') {
      const file = join(images, path);
      mkdirSync(dirname(file), { recursive: true });
      writeFileSync(file, content);
      return file;
    },
    call,
    async status(verb, parameters) {
      const { status } = await call(verb, parameters);
      return `${status.code} ${status.message}`;
    },
    async vm(vmId = VM_ID) {
      const { vmList = [] } = await call('list', { fullStatus: true, vmList: [vmId] });
      return vmList[0] as HostVm;
    },
    async restart() {
      running = await start(running.hypervisor.host);
    },
  };
}
