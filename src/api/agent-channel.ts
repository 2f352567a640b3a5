/** The line between a guest and its node on which the guest agent answers, and who asks for it (ADR 15). */
import type { VmiSpec } from '#api/virtual-machine-instance/spec.ts';

/** The port as a guest finds it, and as libvirt and KubeVirt name it. */
export const AGENT_PORT_NAME = 'org.qemu.guest_agent.0';
/** "true" in the template of a VM that was recorded without the line: it gets it at its next start. */
export const AGENT_CHANNEL_ANNOTATION = 'selfsame.io/guest-agent';

interface Asking {
  readonly metadata: { readonly annotations?: Readonly<Record<string, string>> };
  readonly spec: VmiSpec;
}

/** New VMs have it in any case. */
export function asksForAgent({ metadata, spec }: Asking): boolean {
  if (metadata.annotations?.[AGENT_CHANNEL_ANNOTATION] === 'true') return true;
  return [spec.livenessProbe, spec.readinessProbe].some(
    (probe) => probe?.guestAgentPing !== undefined || probe?.exec !== undefined,
  );
}
