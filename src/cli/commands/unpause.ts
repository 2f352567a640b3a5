/** virtctl unpause */
import { pausingCommand } from '#cli/pausing-command.ts';

export const unpause = pausingCommand({ verb: 'unpause', said: 'unpause', doing: 'unpausing' }, 'Unpause');
