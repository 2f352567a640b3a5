/** Frames of Ethernet, built by hand to try what a guest must not send. */
import { parseIpAddress } from '#lib/ip-address.ts';

const BROADCAST = 'ff:ff:ff:ff:ff:ff';

interface Ethernet {
  readonly from: string;
  /** Default: to everybody. */
  readonly to?: string | undefined;
}

export const mac = (text: string): Buffer => Buffer.from(text.replaceAll(':', ''), 'hex');

export function ip(text: string): Buffer {
  const { family, value } = parseIpAddress(text);
  return Buffer.from(value.toString(16).padStart(family === 4 ? 8 : 32, '0'), 'hex');
}

export function ethernet({ from, to = BROADCAST }: Ethernet, type: number, payload: Buffer): Buffer {
  const header = Buffer.concat([mac(to), mac(from), Buffer.from([type >> 8, type & 255])]);
  // Without padding, which br_netfilter would remove: frames arrive as they were sent.
  return Buffer.concat([header, payload]);
}

interface Arp extends Ethernet {
  readonly operation: 'request' | 'reply';
  readonly senderMac: string;
  readonly sender: string;
  readonly target: string;
}

export function arp({ operation, senderMac, sender, target, ...frame }: Arp): Buffer {
  const head = Buffer.from([0, 1, 8, 0, 6, 4, 0, operation === 'request' ? 1 : 2]);
  return ethernet(frame, 0x0806, Buffer.concat([head, mac(senderMac), ip(sender), Buffer.alloc(6), ip(target)]));
}

interface Packet extends Ethernet {
  readonly source: string;
  readonly destination: string;
}

interface Udp extends Packet {
  readonly ports: readonly [source: number, destination: number];
  readonly data: Buffer;
}

export function udp({ ports, data, ...packet }: Udp): Buffer {
  const header = Buffer.alloc(8);
  header.writeUInt16BE(ports[0], 0);
  header.writeUInt16BE(ports[1], 2);
  header.writeUInt16BE(8 + data.length, 4);
  return ipPacket(packet, 17, Buffer.concat([header, data]));
}

/** An ICMPv6 message with a body after its type, code and checksum. */
export function icmp6(packet: Packet, type: number, body: Buffer): Buffer {
  return ipPacket(packet, 58, Buffer.concat([Buffer.from([type, 0, 0, 0]), body]));
}

/** A neighbour advertisement (136) or solicitation (135). */
export function neighbour(packet: Packet, type: 135 | 136, target: string, data: Buffer): Buffer {
  return icmp6(packet, type, Buffer.concat([Buffer.alloc(4), ip(target), data]));
}

export function ipPacket(packet: Packet, protocol: number, payload: Buffer): Buffer {
  const { source, destination, ...frame } = packet;
  return source.includes(':')
    ? ethernet(frame, 0x86dd, Buffer.concat([header6(protocol, payload.length), ip(source), ip(destination), payload]))
    : ethernet(frame, 0x0800, Buffer.concat([header4(source, destination, protocol, payload.length), payload]));
}

function header6(protocol: number, length: number): Buffer {
  const header = Buffer.from([0x60, 0, 0, 0, 0, 0, protocol, 255]);
  header.writeUInt16BE(length, 4);
  return header;
}

function header4(source: string, destination: string, protocol: number, length: number): Buffer {
  const header = Buffer.concat([
    Buffer.from([0x45, 0, 0, 0, 0, 1, 0, 0, 64, protocol, 0, 0]),
    ip(source),
    ip(destination),
  ]);
  header.writeUInt16BE(20 + length, 2);
  let sum = 0;
  for (let i = 0; i < 20; i += 2) sum += header.readUInt16BE(i);
  while (sum > 0xffff) sum = (sum >> 16) + (sum & 0xffff);
  header.writeUInt16BE(~sum & 0xffff, 10);
  return header;
}
