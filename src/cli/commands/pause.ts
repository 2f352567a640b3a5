/** virtctl pause */
import { pausingCommand } from '#cli/pausing-command.ts';

export const pause = pausingCommand({ verb: 'pause', said: 'pause', doing: 'pausing' }, 'Pause');
