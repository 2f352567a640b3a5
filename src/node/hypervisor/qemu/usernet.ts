/**
 * What QEMU's monitor says about the network inside it (`info usernet`):
 *
 *   Hub -1 (net-default):
 *     Protocol[State]    FD  Source Address  Port   Dest. Address  Port RecvQ SendQ
 *     TCP[HOST_FORWARD]  12       127.0.0.1 40231       10.0.2.15  8080     0     0
 *     TCP[ESTABLISHED]   13       127.0.0.1 40231       10.0.2.15  8080     0     0
 *
 * Of what comes from outside, the source is the port of this machine that was connected to. Pure.
 */
export interface Forwarded {
  /** Undefined where the text does not say. */
  readonly netdev?: string;
  readonly protocol: 'tcp' | 'udp';
  readonly state: string;
  readonly hostPort: number;
  readonly guestPort: number;
}

const HEADING = /\((?<netdev>[^()]+)\):\s*$/;
const ROW =
  /^\s*(?<protocol>TCP|UDP)\[(?<state>[A-Z0-9_]+)[^\]]*\]\s+-?\d+\s+127\.0\.0\.1\s+(?<host>\d+)\s+\S+\s+(?<guest>\d+)\s/;

export function parseUsernet(text: string): Forwarded[] {
  const found: Forwarded[] = [];
  let netdev: string | undefined;
  for (const line of text.split(/\r?\n/)) {
    const heading = HEADING.exec(line)?.groups?.['netdev'];
    if (heading !== undefined) netdev = heading;
    const { protocol, state = '', host, guest } = ROW.exec(line)?.groups ?? {};
    if (protocol === undefined) continue;
    found.push({
      ...(netdev !== undefined && { netdev }),
      protocol: protocol === 'UDP' ? 'udp' : 'tcp',
      state,
      hostPort: Number(host),
      guestPort: Number(guest),
    });
  }
  return found;
}
