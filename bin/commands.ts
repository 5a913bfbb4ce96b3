import type { CommandLine, CommandName } from './command-line.js'
import { runDoctor } from './commands/doctor.js'
import { runForget } from './commands/forget.js'
import { runInspect } from './commands/inspect.js'
import { runList } from './commands/list.js'
import { runResolve } from './commands/resolve.js'
import { runSeal } from './commands/seal.js'
import { runStats } from './commands/stats.js'
import { printSchema, runMigrate } from './commands/tables.js'
import { runUnknown } from './commands/unknown.js'
import type { CommandRequirement, Target } from './target.js'

/** What a command does. Resolves with the exit code. */
export type Command =
  | { readonly needs: 'nothing'; run(line: CommandLine): Promise<number> }
  | { readonly needs: CommandRequirement; run(line: CommandLine, target: Target): Promise<number> }

export const commands: Readonly<Record<CommandName, Command>> = {
  unknown: { needs: 'store', run: runUnknown },
  list: { needs: 'store', run: runList },
  inspect: { needs: 'store', run: runInspect },
  resolve: { needs: 'store', run: runResolve },
  forget: { needs: 'store', run: runForget },
  stats: { needs: 'server', run: runStats },
  doctor: { needs: 'server', run: runDoctor },
  schema: { needs: 'nothing', run: printSchema },
  migrate: { needs: 'tables', run: runMigrate },
  seal: { needs: 'nothing', run: runSeal },
}
