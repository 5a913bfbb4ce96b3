import { defineConfig, mergeConfig } from 'vitest/config'
import browser from './vitest.config.js'

const config = mergeConfig(browser, defineConfig({}))
config.test.include = ['integrations/test/browser/screenshots.ts']

/** Takes the playground's pictures. */
export default config
