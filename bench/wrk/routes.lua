-- routes.lua: GET of random routes, by host or by path.
--
--   wrk -t1 -c32 -d5s -s bench/wrk/routes.lua URL -- routes=1000 [host=r%d.example] [path=/]
--
-- host and path: where "%d" is, the number of the route, from 0.

local figures = dofile((debug.getinfo(1, "S").source:match("^@(.*/)") or "./") .. "figures.lua")

setup = figures.setup
done = figures.done("routes")

-- Requests that a thread prepares: formatting one for each send would measure Lua.
local PREPARED = 4096
local prepared, at = {}, 0

function init(arguments)
   local options = figures.options(arguments, { routes = 1000, host = "r%d.example", path = "/" })
   math.randomseed(seed)
   for index = 1, math.min(PREPARED, options.routes * 4) do
      local number = math.random(0, options.routes - 1)
      local headers = {}
      if options.host ~= "" then headers["Host"] = options.host:gsub("%%d", number) end
      prepared[index] = wrk.format("GET", (options.path:gsub("%%d", number)), headers)
   end
   figures.count_statuses()
end

function request()
   at = at % #prepared + 1
   return prepared[at]
end
