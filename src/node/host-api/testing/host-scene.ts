/**
 * A host API on simulated guests with its own directory. After `restart`, a new host API finds the guests of the
 * previous one.
 */
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type { TestContext } from 'node:test';
import type { HostAnswer, HostVerb, HostVm } from '#api/host-api.ts';
import { FakeClock } from '#lib/testing/fake-clock.ts';
import { silentLog } from '#lib/log.ts';
import { DeviceReadings } from '#node/guests/device-readings.ts';
import { DomainLocks } from '#node/guests/domain-locks.ts';
import type { HostApi } from '#node/endpoint/endpoint-agent.ts';
import { AgentReader } from '#node/guest-agent/agent-reader.ts';
import { openHostApi } from '#node/host-api/host-api.ts';
import { createFakeHypervisor, type FakeHypervisor } from '#node/hypervisor/fake/fake-hypervisor.ts';

export const VM_ID = '27c61cea-f4fd-47e9-84e8-d1598f32ccc0';

/** A VM with only the required parameters. */
export const aVm = { vmId: VM_ID, memSize: 512, display: 'vnc' };

export interface HostScene {
  /** The directory of the images. */
  readonly dir: string;
  readonly clock: FakeClock;
  hypervisor(): FakeHypervisor;
  api(): HostApi;
  /** Resolves when every connected guest agent has been queried. */
  agentsRead(): Promise<void>;
  /** Creates a file below host-images and returns its path. */
  image(path: string, content?: string | Buffer): string;
  call(verb: HostVerb, parameters?: Readonly<Record<string, unknown>>, signal?: AbortSignal): Promise<HostAnswer>;
  /** Returns code and message as text: `0 Done`. */
  status(verb: HostVerb, parameters?: Readonly<Record<string, unknown>>): Promise<string>;
  /** Returns the VM as `list` reports it. */
  vm(vmId?: string): Promise<HostVm>;
  /** Replaces the agent, as after a crash; the new one adopts the guests. */
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
      devDir: join(dir, 'dev'),
      hypervisor,
      readings: new DeviceReadings({ hypervisor, clock }),
      agents,
      turns: new DomainLocks(),
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
