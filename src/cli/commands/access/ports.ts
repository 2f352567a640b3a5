/** Parses ports to forward: `[protocol/]local[:target]`, as in KubeVirt, or `local[:target]/protocol`. Pure. */
import { UsageError } from '#lib/command-line/command-error.ts';

export interface ForwardedPort {
  /** 0 = a free port. */
  readonly local: number;
  readonly remote: number;
  readonly protocol: 'tcp' | 'udp';
}

const MAX_PORT = 65_535;

/** Throws UsageError. */
export function parsePort(text: string): ForwardedPort {
  const { protocol, numbers } = splitProtocol(text);
  const [local = '', remote = local, ...more] = numbers.split(':');
  if (local === '' || more.length > 0) throw invalid(text, 'missing local and/or remote port');
  const port: ForwardedPort = {
    local: parsePortNumber(text, local, 0),
    remote: parsePortNumber(text, remote, 1),
    protocol,
  };
  return port;
}

function splitProtocol(text: string): { readonly protocol: 'tcp' | 'udp'; readonly numbers: string } {
  const slash = text.indexOf('/');
  if (slash < 0) return { protocol: 'tcp', numbers: text };
  const [before, after] = [text.slice(0, slash), text.slice(slash + 1)];
  // A port begins with a digit, a protocol never does.
  const [protocol, numbers] = /^\d/.test(before) ? [after, before] : [before, after];
  if (protocol !== 'tcp' && protocol !== 'udp') throw new UsageError(`unknown protocol: ${protocol}`);
  return { protocol, numbers };
}

function parsePortNumber(text: string, digits: string, least: number): number {
  const number = /^\d{1,5}$/.test(digits) ? Number(digits) : -1;
  if (number >= least && number <= MAX_PORT) return number;
  throw invalid(text, `${JSON.stringify(digits)} is not between ${least} and ${MAX_PORT}`);
}

function invalid(text: string, why: string): UsageError {
  return new UsageError(`invalid port ${JSON.stringify(text)}: ${why}`);
}
