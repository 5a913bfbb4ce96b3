import { UsageError } from './command-line.js'

/** A driver that is no part of the package. @throws UsageError: it is not installed. */
export async function loadDriver<Module>(name: string, load: () => Promise<Module>): Promise<Module> {
  try {
    return await load()
  } catch (error) {
    if ((error as { code?: unknown }).code !== 'ERR_MODULE_NOT_FOUND') throw error
    throw new UsageError(
      `This needs the package ${name}: npm install ${name}. Or give --store with a module of your own.`,
    )
  }
}
