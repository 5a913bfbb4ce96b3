import type { TestProject } from 'vitest/node'
import { buildExample } from '../../../test/support/built-example.js'
import { browserProgram } from './browser-program.js'

declare module 'vitest' {
  export interface ProvidedContext {
    /** The built example's program. */
    readonly main: string
    readonly browser: string
  }
}

/** Finds the browser and builds the example, once for all tests. */
export default async function setup({ provide }: TestProject): Promise<() => Promise<void>> {
  provide('browser', programOrExit())
  const example = await buildExample({ clients: ['sqlite'] })
  provide('main', example.main)
  return example.remove
}

function programOrExit(): string {
  try {
    return browserProgram()
  } catch (error) {
    console.error((error as Error).message)
    process.exit(1)
  }
}
