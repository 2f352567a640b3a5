/** Reads guest information for users, on demand and in KubeVirt's format. */
import type { GuestAgentInfo, GuestRead } from '#api/guest-info.ts';
import * as answers from '#node/guest-agent/agent-answers.ts';
import { GuestAgentError } from '#node/hypervisor/guest-access.ts';
import type { Hypervisor } from '#node/hypervisor/hypervisor.ts';

type AgentAccess = Pick<Hypervisor, 'get' | 'askAgent'>;

/** Returns the requested information. Throws GuestAgentError. */
export async function readGuest(hypervisor: AgentAccess, id: string, what: GuestRead): Promise<object> {
  const ask = (execute: string) => hypervisor.askAgent(id, { execute });
  switch (what) {
    case 'userlist':
      return { metadata: {}, items: answers.readUsers(await ask('guest-get-users')) };
    case 'filesystemlist':
      return { metadata: {}, items: answers.readFileSystems(await ask('guest-get-fsinfo')) };
    case 'guestosinfo':
      return readAgentInfo(hypervisor, id);
  }
}

/** Reads the general information. Leaves out answers to commands that an old guest agent does not know. */
async function readAgentInfo(hypervisor: AgentAccess, id: string): Promise<GuestAgentInfo> {
  const ask = async (execute: string) => {
    try {
      return await hypervisor.askAgent(id, { execute });
    } catch (error) {
      if (error instanceof GuestAgentError && error.reason === 'Refused') return undefined;
      throw error;
    }
  };
  const version = answers.readVersion(await hypervisor.askAgent(id, { execute: 'guest-info' }));
  const hostname = answers.readHostName(await ask('guest-get-host-name'));
  const os = answers.readOsInfo(await ask('guest-get-osinfo'));
  const timezone = answers.readTimezone(await ask('guest-get-timezone'));
  const userList = answers.readUsers(await ask('guest-get-users'));
  const disks = answers.readFileSystems(await ask('guest-get-fsinfo'));
  return {
    ...version,
    ...(hostname !== undefined && { hostname }),
    os,
    ...(timezone !== undefined && { timezone }),
    ...(userList.length > 0 && { userList }),
    fsInfo: { disks },
    ...(hypervisor.get(id)?.frozenUntilMs !== undefined && { fsFreezeStatus: 'frozen' }),
  };
}
