/**
 * A hypervisor whose guests are connected to networks (pod-networks.ts). It passes everything to the given hypervisor
 * and adds:
 *
 *   create          attaches the networks, then starts the guest in their namespace
 *   plug, unplug    connects and disconnects an interface
 *   receive         attaches the networks silently
 *   send            silences them once the guest is paused for the switchover
 *   abortMigration  activates them again, after the guest continues
 *   commit          activates them, before the guest continues
 *   remove          detaches them
 *   (the guest ends) silences them, because the next guest of the VM may be on another node
 *   adopt           brings the networks of all guests into the state that follows from the record of the guest
 *
 * Of the two nodes of a migration, one is silent at any time: the source is silenced before it records `migrated`, and
 * the target is activated only after that record (ADR 13).
 */
import { errorMessage } from '#lib/error-message.ts';
import type { Log } from '#lib/log.ts';
import type { Device, DomainDefinition } from '#node/hardware/domain-definition.ts';
import type { ProcessUser } from '#node/hardware/guest-user.ts';
import { HypervisorError, type DomainInfo, type Hypervisor } from '#node/hypervisor/hypervisor.ts';
import { PodNetworkError, type PodNetwork, type PodNetworks, type TapRequest } from '#node/network/pod-networks.ts';

interface ConnectOptions {
  readonly networks: PodNetworks;
  /** The user of a guest's process, who owns its tap devices; undefined: our own. */
  readonly userOf: (id: string) => ProcessUser | undefined;
  readonly log: Log;
}

export function connectGuests<T extends Hypervisor>(hypervisor: T, options: ConnectOptions): T {
  const connected = connectedMethods(hypervisor, options);
  return new Proxy(hypervisor, {
    get(target, key) {
      if (Object.hasOwn(connected, key)) return connected[key as keyof typeof connected];
      const value: unknown = Reflect.get(target, key, target);
      return typeof value === 'function' ? (value.bind(target) as unknown) : value;
    },
  });
}

type ConnectedMethods = Pick<
  Hypervisor,
  'adopt' | 'create' | 'plug' | 'remove' | 'receive' | 'send' | 'abortMigration' | 'commit' | 'close'
>;

function connectedMethods(hypervisor: Hypervisor, { networks, userOf, log }: ConnectOptions): ConnectedMethods {
  /** Domains to which an interface is being plugged: its network is there before the guest has the device. */
  const plugging = new Set<string>();
  const releases = new Map<string, Promise<void>>();
  let stopListening = () => {};

  const attach = async (definition: DomainDefinition, isSilent: boolean, signal: AbortSignal | undefined) => {
    const { id, name, network, devices } = definition;
    if (network === undefined) return undefined;
    const interfaces = devices.flatMap(tapRequestOf);
    const request = { id, network, user: userOf(id), interfaces };
    return await asHypervisorError(`connect domain "${name}" to its networks`, () =>
      networks.attach(request, { isSilent, signal }),
    );
  };

  const start = async <R>(
    definition: DomainDefinition,
    isSilent: boolean,
    signal: AbortSignal | undefined,
    run: (network: { networkNamespace?: string }) => Promise<R>,
  ): Promise<R> => {
    const network = await attach(definition, isSilent, signal);
    if (network === undefined) return await run({});
    try {
      return await run({ networkNamespace: network.namespace });
    } catch (error) {
      await detach(definition.id);
      throw error;
    }
  };

  /** A failure is only logged: the next start of the agent tries again. */
  const detach = async (id: string) => {
    try {
      await networks.detach(id);
    } catch (err) {
      log.error({ err, domain: id }, 'Cannot remove the networks of a guest');
    }
  };

  const setSilent = async (id: string, isSilent: boolean) => {
    if (networks.get(id) === undefined) return;
    await asHypervisorError(`${isSilent ? 'silence' : 'activate'} the networks of domain "${id}"`, () =>
      isSilent ? networks.silence(id) : networks.activate(id),
    );
  };

  /** Disconnects the interfaces that the guest has released. */
  const releaseUnplugged = async (id: string) => {
    const definition = hypervisor.inspect(id)?.definition;
    const network = networks.get(id);
    if (definition === undefined || network === undefined || plugging.has(id)) return;
    for (const podInterface of findReleased(network, definition)) await networks.unplug(id, podInterface);
  };

  const onChange = (id: string) => {
    if (networks.get(id) === undefined) return;
    const hasEnded = hypervisor.get(id)?.current.state === 'ended';
    const release = (releases.get(id) ?? Promise.resolve())
      .then(() => (hasEnded ? setSilent(id, true) : releaseUnplugged(id)))
      .catch((err: unknown) => log.error({ err, domain: id }, 'Cannot disconnect a guest or an unplugged interface'))
      .finally(() => releases.get(id) === release && releases.delete(id));
    releases.set(id, release);
  };

  return {
    async adopt() {
      await hypervisor.adopt();
      await networks.adopt();
      stopListening = hypervisor.onChange(onChange);
      for (const domain of hypervisor.list()) {
        if (domain.current.state !== 'ended') {
          await setSilent(domain.id, isSilentGuest(domain)).catch((err: unknown) =>
            log.error({ err, domain: domain.id }, 'Cannot adopt the networks of a guest'),
          );
        }
        onChange(domain.id);
      }
      for (const id of networks.list()) if (hypervisor.get(id) === undefined) await detach(id);
    },
    async create(definition, options = {}) {
      if (hypervisor.get(definition.id) !== undefined) return;
      await start(definition, false, options.signal, (network) =>
        hypervisor.create(definition, { ...options, ...network }),
      );
    },
    async receive(definition, incoming, options) {
      // The hypervisor refuses it. The network belongs to the guest that is here.
      if (hypervisor.get(definition.id) !== undefined) return await hypervisor.receive(definition, incoming, options);
      return await start(definition, true, options.signal, (network) =>
        hypervisor.receive(definition, incoming, { ...options, ...network }),
      );
    },
    async plug(id, device) {
      const [tap] = tapRequestOf(device);
      if (tap === undefined) return await hypervisor.plug(id, device);
      plugging.add(id);
      try {
        await asHypervisorError(`connect interface "${device.name}"`, () => networks.plug(id, tap));
        await hypervisor.plug(id, device);
      } finally {
        plugging.delete(id);
        onChange(id);
      }
    },
    async send(id, outgoing, options) {
      await hypervisor.send(id, outgoing, options);
      await setSilent(id, true);
    },
    async abortMigration(id) {
      await hypervisor.abortMigration(id);
      const domain = hypervisor.get(id);
      if (domain !== undefined && domain.current.state !== 'ended') await setSilent(id, isSilentGuest(domain));
    },
    async commit(id) {
      const migration = hypervisor.get(id)?.migration;
      // Before the guest is stored here, it may still run at the source, and the hypervisor refuses.
      if (migration?.role === 'target' && migration.step !== 'waiting') {
        // The guest must continue even if this fails; the networks are repaired later.
        await setSilent(id, false).catch((err: unknown) =>
          log.error({ err, domain: id }, 'Cannot activate the networks of a migrated guest'),
        );
      }
      await hypervisor.commit(id);
    },
    async remove(id) {
      await hypervisor.remove(id);
      await releases.get(id);
      await detach(id);
    },
    async close() {
      stopListening();
      await Promise.all(releases.values());
      await hypervisor.close();
      await networks.close();
    },
  };
}

/** Reports whether nothing may leave or enter the namespace of a guest, because it may run on another node. */
function isSilentGuest({ current, migration }: Pick<DomainInfo, 'current' | 'migration'>): boolean {
  if (current.state === 'incoming' || (current.state === 'paused' && current.why === 'migration')) return true;
  return migration?.role === 'source' && (migration.step === 'migrated' || migration.step === 'left');
}

function tapRequestOf(device: Device): TapRequest[] {
  if (device.type !== 'interface' || device.backend.type !== 'pod') return [];
  const { macAddress, queues, backend } = device;
  return [{ tap: backend.tap, ...(queues !== undefined && { queues }), macAddress, attachment: backend.attachment }];
}

/** Returns the interfaces of the namespace that no device of the guest uses. */
function findReleased({ interfaces }: PodNetwork, { devices }: DomainDefinition): string[] {
  const used = new Set(devices.flatMap(tapRequestOf).map(({ attachment }) => attachment.podInterface));
  return interfaces.map(({ podInterface }) => podInterface).filter((name) => !used.has(name));
}

async function asHypervisorError<T>(what: string, run: () => Promise<T>): Promise<T> {
  try {
    return await run();
  } catch (error) {
    const permanent = error instanceof PodNetworkError && error.permanent;
    throw new HypervisorError(`Cannot ${what}: ${errorMessage(error)}`, { cause: error, permanent });
  }
}
