/**
 * The hypervisor of real guests: a QEMU per domain (and a swtpm if it has a TPM), controlled over QMP. This file holds
 * the domains by id. One domain is qemu-domain.ts, its start start.ts, its adoption adopt.ts.
 */
import { resolve } from 'node:path';
import type { Clock } from '#lib/clock.ts';
import { invariant } from '#lib/invariant.ts';
import type { Log } from '#lib/log.ts';
import type { DomainDefinition, PluggableDevice } from '#node/hardware/domain-definition.ts';
import {
  HypervisorError,
  type CopyState,
  type CreateOptions,
  type DiskCopy,
  type Hypervisor,
} from '#node/hypervisor/hypervisor.ts';
import type { Capabilities } from '#node/hardware/capabilities.ts';
import type {
  IncomingMigration,
  MigrationEndpoint,
  OutgoingMigration,
  SendOptions,
  TransferredState,
} from '#node/hypervisor/migration.ts';
import { chooseAccelerator } from '#node/hypervisor/qemu/process/accelerator.ts';
import { adoptDomains } from '#node/hypervisor/qemu/adopt.ts';
import { readCapabilities } from '#node/hypervisor/qemu/capabilities.ts';
import type { QemuContext } from '#node/hypervisor/qemu/process/context.ts';
import type {
  AgentCommand,
  AskAgentOptions,
  FreezeOptions,
  GuestPort,
  OpenPortOptions,
} from '#node/hypervisor/guest-access.ts';
import { DomainDir } from '#node/hypervisor/qemu/record/domain-dir.ts';
import { DEFAULT_OVMF_DIR } from '#node/hypervisor/qemu/state/firmware.ts';
import { LogTruncator } from '#node/hypervisor/qemu/process/log-truncator.ts';
import { Sandboxes } from '#node/hypervisor/qemu/sandbox/sandbox.ts';
import type { QemuDomain } from '#node/hypervisor/qemu/qemu-domain.ts';
import { startQemuDomain, type StartOptions } from '#node/hypervisor/qemu/start.ts';

export interface QemuHypervisorOptions {
  /** `<node dir>/domains`. */
  readonly dir: string;
  readonly accel: 'auto' | 'kvm' | 'tcg';
  readonly clock: Clock;
  readonly log: Log;
  readonly qemuBinary?: string;
  readonly swtpmBinary?: string;
  /** Runs each guest in a sandbox as a user of its own, which needs root. Default: as our own user. */
  readonly sandboxed?: boolean;
  readonly runcBinary?: string;
  readonly ovmfDir?: string;
  /** Bandwidth of each disk copy; default: unlimited. */
  readonly copyBytesPerSecond?: number;
}

export function createQemuHypervisor(options: QemuHypervisorOptions): Hypervisor {
  return new QemuHypervisor(options);
}

class QemuHypervisor implements Hypervisor {
  readonly #options: QemuHypervisorOptions;
  /** The absolute path of `options.dir`. */
  readonly #dir: string;
  readonly #logKeeper: LogTruncator;
  readonly #domains = new Map<string, QemuDomain>();
  readonly #starting = new Map<string, Promise<void>>();
  readonly #listeners = new Set<(id: string) => void>();
  #context: Promise<QemuContext> | undefined;
  #capabilities: Promise<Capabilities> | undefined;

  constructor(options: QemuHypervisorOptions) {
    this.#options = options;
    this.#dir = resolve(options.dir);
    this.#logKeeper = new LogTruncator(options.clock, () => [...this.#domains.values()].flatMap(({ logs }) => logs));
  }

  capabilities(): Promise<Capabilities> {
    this.#capabilities ??= this.#readCapabilities().catch((error: unknown) => {
      this.#capabilities = undefined;
      throw error;
    });
    return this.#capabilities;
  }

  async adopt(): Promise<void> {
    const context = await this.#getContext();
    for (const domain of await adoptDomains(this.#dir, context, this.#onDomainChange)) {
      this.#domains.set(domain.view.id, domain);
    }
    this.#logKeeper.start();
  }

  list() {
    return [...this.#domains.values()].map(({ view }) => view);
  }

  get(id: string) {
    return this.#domains.get(id)?.view;
  }

  onChange(listener: (id: string) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  async create(
    definition: DomainDefinition,
    { paused = false, networkNamespace, signal }: CreateOptions = {},
  ): Promise<void> {
    const { id } = definition;
    if (this.#domains.has(id)) return;
    const onReady = async (domain: QemuDomain) => (paused ? undefined : domain.resume());
    await (this.#starting.get(id) ?? this.#start(definition, { paused, networkNamespace, signal, onReady }));
  }

  async pause(id: string): Promise<void> {
    await this.#changeableDomain(id, 'pause').pause();
  }

  async resume(id: string): Promise<void> {
    await this.#changeableDomain(id, 'resume').resume();
  }

  async powerDown(id: string): Promise<void> {
    const domain = this.#knownDomain(id, 'shut down');
    domain.migration.checkPresent('shut down');
    await domain.powerDown();
  }

  async softReboot(id: string): Promise<void> {
    await this.#changeableDomain(id, 'restart').softReboot();
  }

  async reset(id: string): Promise<void> {
    await this.#changeableDomain(id, 'reset').reset();
  }

  async destroy(id: string): Promise<void> {
    await this.#domains.get(id)?.destroy();
  }

  async remove(id: string): Promise<void> {
    const domain = this.#domains.get(id);
    if (domain === undefined) return;
    await domain.remove();
    this.#domains.delete(id);
    this.#notify(id);
  }

  async ping(id: string, { timeoutMs }: { readonly timeoutMs: number }) {
    await this.#knownDomain(id, 'ping').channels.ping(timeoutMs);
  }

  async learn(id: string) {
    return this.#knownDomain(id, 'learn the devices of').learn();
  }

  inspect(id: string) {
    return this.#domains.get(id)?.inspection;
  }

  async plug(id: string, device: PluggableDevice): Promise<void> {
    await this.#changeableDomain(id, 'plug a device into').hotplug.plug(device);
  }

  async unplug(id: string, deviceId: string): Promise<void> {
    await this.#changeableDomain(id, 'unplug a device of').hotplug.unplug(deviceId);
  }

  async setLink(id: string, deviceId: string, link: 'up' | 'down'): Promise<void> {
    await this.#changeableDomain(id, 'set a link of').hotplug.setLink(deviceId, link);
  }

  async openConsole(id: string) {
    return this.#knownDomain(id, 'open the console of').openConsole();
  }

  async openDisplay(id: string) {
    return this.#knownDomain(id, 'open the display of').display.open();
  }

  async screenshot(id: string, options: { readonly moveCursor: boolean }): Promise<Buffer> {
    return this.#knownDomain(id, 'take a screenshot of').display.screenshot(options);
  }

  async readConsoleLog(id: string): Promise<Buffer> {
    return this.#knownDomain(id, 'read the console log of').channels.readConsoleLog();
  }

  async readLog(id: string): Promise<Buffer> {
    return this.#knownDomain(id, 'read the log of').readLog();
  }

  async openPort(id: string, port: GuestPort, options?: OpenPortOptions) {
    return this.#liveDomain(id, 'reach a port of').channels.ports.open(port, options);
  }

  async askAgent(id: string, command: AgentCommand, options?: AskAgentOptions): Promise<unknown> {
    return this.#liveDomain(id, 'ask the agent of').channels.askAgent(command, options);
  }

  async freeze(id: string, options: FreezeOptions): Promise<void> {
    this.#liveDomain(id, 'freeze');
    await this.#changeableDomain(id, 'freeze').channels.freeze.freeze(options);
  }

  async thaw(id: string): Promise<void> {
    await this.#knownDomain(id, 'thaw').channels.freeze.thaw();
  }

  async resizeDisk(id: string, deviceId: string, bytes: number): Promise<void> {
    await this.#changeableDomain(id, 'resize a disk of').resizeDisk(deviceId, bytes);
  }

  async startCopies(id: string, copies: readonly DiskCopy[]): Promise<void> {
    await this.#changeableDomain(id, 'copy disks of').copies.start(copies);
  }

  async copyState(id: string, copyId: string): Promise<CopyState | undefined> {
    return this.#domains.get(id)?.copies.state(copyId);
  }

  async endCopy(id: string, copyId: string): Promise<void> {
    await this.#domains.get(id)?.copies.end(copyId);
  }

  async diskSizes(id: string): Promise<ReadonlyMap<string, number>> {
    return this.#knownDomain(id, 'read the disk sizes of').diskSizes();
  }

  workingDir(id: string): string | undefined {
    return this.#domains.get(id)?.workingDir;
  }

  async send(id: string, outgoing: OutgoingMigration, options: SendOptions): Promise<void> {
    await this.#knownDomain(id, 'send').migration.send(outgoing, options);
  }

  async switchOver(id: string): Promise<TransferredState> {
    return this.#knownDomain(id, 'switch over').migration.switchOver();
  }

  async recordMigrated(id: string): Promise<void> {
    await this.#knownDomain(id, 'record the migration of').migration.recordMigrated();
  }

  async leave(id: string): Promise<void> {
    await this.#knownDomain(id, 'leave').migration.leave();
  }

  async abortMigration(id: string): Promise<void> {
    await this.#knownDomain(id, 'abort the migration of').migration.abort();
  }

  async receive(
    definition: DomainDefinition,
    incoming: IncomingMigration,
    { networkNamespace, signal }: { networkNamespace?: string; signal?: AbortSignal },
  ): Promise<MigrationEndpoint> {
    const { id, name } = definition;
    if (this.#domains.has(id) || this.#starting.has(id)) {
      throw new HypervisorError(`Cannot receive domain "${name}": a domain with this id exists already`);
    }
    let endpoint: MigrationEndpoint | undefined;
    const onReady = async ({ migration }: QemuDomain) => {
      endpoint = await migration.openEndpoint(incoming);
    };
    await this.#start(definition, { paused: incoming.paused, incoming, networkNamespace, signal, onReady });
    invariant(endpoint !== undefined, 'a waiting guest has an endpoint');
    return endpoint;
  }

  async store(id: string, sent: TransferredState, options: { signal?: AbortSignal }): Promise<void> {
    await this.#knownDomain(id, 'store').migration.store(sent, options);
  }

  async commit(id: string): Promise<void> {
    await this.#knownDomain(id, 'commit').migration.commit();
  }

  async close(): Promise<void> {
    this.#listeners.clear();
    this.#logKeeper.stop();
    await Promise.allSettled(this.#starting.values());
    await Promise.all([...this.#domains.values()].map((domain) => domain.close()));
  }

  #start(definition: DomainDefinition, options: Omit<StartOptions, 'onChange'>): Promise<void> {
    const { id } = definition;
    const starting = this.#startNow(definition, options).finally(() => this.#starting.delete(id));
    this.#starting.set(id, starting);
    return starting;
  }

  async #startNow(definition: DomainDefinition, options: Omit<StartOptions, 'onChange'>): Promise<void> {
    const dir = new DomainDir(this.#dir, definition.id);
    const domain = await startQemuDomain(dir, definition, await this.#getContext(), {
      ...options,
      onChange: this.#onDomainChange,
    });
    this.#domains.set(definition.id, domain);
    this.#notify(definition.id);
  }

  /** Returns a domain that does not migrate, for changes that a migration would conflict with. */
  #changeableDomain(id: string, verb: string): QemuDomain {
    const domain = this.#knownDomain(id, verb);
    domain.migration.checkNotMigrating(verb);
    return domain;
  }

  #liveDomain(id: string, verb: string): QemuDomain {
    const domain = this.#knownDomain(id, verb);
    const { name, current } = domain.view;
    if (current.state === 'ended') throw new HypervisorError(`Cannot ${verb} domain "${name}": the guest has ended`);
    return domain;
  }

  #knownDomain(id: string, verb: string): QemuDomain {
    const domain = this.#domains.get(id);
    if (domain === undefined) throw new HypervisorError(`Cannot ${verb} domain "${id}": it does not exist`);
    return domain;
  }

  /** Not called for domains that are still being started or adopted: they are not listed yet. */
  readonly #onDomainChange = (id: string) => {
    if (this.#domains.has(id)) this.#notify(id);
  };

  #notify(id: string): void {
    for (const listener of [...this.#listeners]) listener(id);
  }

  async #readCapabilities(): Promise<Capabilities> {
    const { qemuBinary, accelerator, clock } = await this.#getContext();
    return readCapabilities(qemuBinary, accelerator, clock);
  }

  #getContext(): Promise<QemuContext> {
    this.#context ??= this.#createContext();
    return this.#context;
  }

  async #createContext(): Promise<QemuContext> {
    const { accel, clock, log, qemuBinary, swtpmBinary, ovmfDir, copyBytesPerSecond } = this.#options;
    const { sandboxed = false, runcBinary = 'runc' } = this.#options;
    return {
      clock,
      log,
      sandboxes: sandboxed ? new Sandboxes(this.#dir, { runcBinary, clock }) : undefined,
      qemuBinary: qemuBinary ?? 'qemu-system-x86_64',
      swtpmBinary: swtpmBinary ?? 'swtpm',
      ovmfDir: ovmfDir ?? DEFAULT_OVMF_DIR,
      accelerator: await chooseAccelerator(accel, { asOtherUser: sandboxed }),
      copyBytesPerSecond,
    };
  }
}
