/**
 * The guest's side of a simulated guest's connections: an agent that answers as QEMU's does, and open ports. Neither
 * exists until a test starts it.
 */
import { duplexPair, type Duplex } from 'node:stream';
import type { DomainDefinition } from '#node/hardware/domain-definition.ts';
import { GuestAgentError, type AgentCommand, type GuestPort } from '#node/hypervisor/guest-access.ts';
import { portRefusedError } from '#node/hypervisor/hypervisor.ts';

/** The agent's answers by command. An Error is a refusal; a function is called each time. */
export type AgentAnswers = Readonly<Record<string, unknown>>;

/** Handles the guest's end of a connection. */
export type PortServer = (connection: Duplex) => void;

export interface FakeAgentState {
  frozen: boolean;
}

/** Answers as a small Linux with one address per interface would. */
export function answerAgentCommand(
  { execute, arguments: args = {} }: AgentCommand,
  definition: DomainDefinition,
  answers: AgentAnswers,
  state: FakeAgentState,
): unknown {
  const own = answers[execute];
  if (own !== undefined)
    return checkAnswer(typeof own === 'function' ? (own as (args: unknown) => unknown)(args) : own);
  switch (execute) {
    case 'guest-fsfreeze-freeze':
      state.frozen = true;
      return 1;
    case 'guest-fsfreeze-thaw':
      state.frozen = false;
      return 1;
    case 'guest-fsfreeze-status':
      return state.frozen ? 'frozen' : 'thawed';
    case 'guest-network-get-interfaces':
      return networkInterfaces(definition);
    default: {
      const standard = STANDARD[execute];
      if (standard !== undefined) return standard;
      throw new GuestAgentError('Refused', `the guest agent refused ${execute}: no such command (CommandNotFound)`);
    }
  }
}

function checkAnswer(answer: unknown): unknown {
  if (answer instanceof Error) throw new GuestAgentError('Refused', `the guest agent refused: ${answer.message}`);
  return answer;
}

const STANDARD: Readonly<Record<string, unknown>> = {
  'guest-ping': {},
  'guest-info': { version: '7.2.22', supported_commands: [{ name: 'guest-ping', enabled: true }] },
  'guest-get-osinfo': {
    id: 'simulated',
    name: 'Simulated Linux',
    'pretty-name': 'Simulated Linux 1',
    version: '1',
    'version-id': '1',
    'kernel-release': '6.1.0',
    'kernel-version': '#1 SMP',
    machine: 'x86_64',
  },
  'guest-get-host-name': { 'host-name': 'simulated' },
  'guest-get-timezone': { zone: 'UTC', offset: 0 },
  'guest-get-users': [],
  'guest-get-fsinfo': [],
  'guest-exec': { pid: 1 },
  'guest-exec-status': { exited: true, exitcode: 0 },
};

function networkInterfaces({ devices }: DomainDefinition): unknown[] {
  const nics = devices.flatMap((device) => (device.type === 'interface' ? device : []));
  const loopback = { name: 'lo', 'hardware-address': '00:00:00:00:00:00', 'ip-addresses': [address('127.0.0.1')] };
  return [
    loopback,
    ...nics.map(({ macAddress }, i) => ({
      name: `eth${i}`,
      'hardware-address': macAddress,
      'ip-addresses': [address(`10.0.2.${15 + i}`)],
    })),
  ];
}

const address = (ip: string) => ({ 'ip-address-type': 'ipv4', 'ip-address': ip, prefix: 24 });

/** The open ports of one guest. They are gone with the process that simulates it. */
export class FakePorts {
  readonly #servers = new Map<string, PortServer>();
  readonly #open = new Set<Duplex>();

  listen(port: GuestPort, server: PortServer): void {
    this.#servers.set(keyOf(port), server);
  }

  stop(): void {
    this.#servers.clear();
    this.closeConnections();
  }

  open(port: GuestPort): Duplex {
    const server = this.#servers.get(keyOf(port));
    if (server === undefined) throw portRefusedError(port.port);
    const [ours, theirs] = duplexPair();
    for (const end of [ours, theirs]) end.on('error', () => undefined);
    this.#open.add(ours);
    ours.once('close', () => {
      this.#open.delete(ours);
      theirs.destroy();
    });
    server(theirs);
    return ours;
  }

  closeConnections(): void {
    for (const connection of this.#open) connection.destroy();
  }
}

const keyOf = ({ port, protocol }: GuestPort) => `${protocol} ${port}`;
