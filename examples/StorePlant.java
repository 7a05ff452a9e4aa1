import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.math.BigInteger;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.CompletionException;
import java.util.concurrent.TimeUnit;

/** Stores a plant. Usage: java StorePlant.java ID NAME [TAG] */
class StorePlant {
  private static final int ATTEMPTS = 10;
  private static final int TIMEOUT_SECONDS = 10;
  private static final Set<Integer> RETRY_STATUSES = Set.of(429, 502, 503, 504);
  private static final ObjectMapper JSON = new ObjectMapper();
  private static final HttpClient CLIENT = HttpClient.newHttpClient();

  public static void main(String[] args) throws InterruptedException {
    try {
      run(args);
    } catch (IllegalArgumentException | IllegalStateException e) {
      System.err.println(e.getMessage());
      System.exit(1);
    }
  }

  private static void run(String[] args) throws InterruptedException {
    ObjectNode plant = readPlant(args);
    String token = System.getenv("PLANT_STORE_TOKEN");
    if (token == null) {
      throw new IllegalStateException("Set PLANT_STORE_TOKEN to a token of the Plant Store.");
    }
    String url = System.getenv().getOrDefault("PLANT_STORE_URL", "http://127.0.0.1:3000");
    System.out.println(storePlant(plant, url, token.strip()));
  }

  private static ObjectNode readPlant(String[] args) {
    if (args.length < 2
        || args.length > 3
        || !args[0].matches("-?(0|[1-9][0-9]*)")
        || args[1].isEmpty()) {
      throw new IllegalArgumentException("Usage: StorePlant.java ID NAME [TAG]");
    }
    // A BigInteger is exact, a double is not.
    ObjectNode plant = JSON.createObjectNode().put("id", new BigInteger(args[0]));
    plant.put("name", args[1]);
    if (args.length == 3) {
      plant.put("tag", args[2]);
    }
    return plant;
  }

  /** Each attempt sends the same plant, so it is stored only once. */
  private static JsonNode storePlant(ObjectNode plant, String url, String token)
      throws InterruptedException {
    HttpRequest request =
        HttpRequest.newBuilder(URI.create(url.replaceFirst("/?$", "/plants")))
            .header("Authorization", "Bearer " + token)
            .header("Content-Type", "application/json")
            .POST(HttpRequest.BodyPublishers.ofString(plant.toString()))
            .build();
    for (int attempt = 1; attempt <= ATTEMPTS; attempt++) {
      Optional<HttpResponse<String>> response = send(request);
      if (response.isPresent() && !RETRY_STATUSES.contains(response.get().statusCode())) {
        return resultOf(response.get(), plant);
      }
      TimeUnit.SECONDS.sleep(response.map(StorePlant::secondsToWait).orElse(1L));
    }
    throw new IllegalStateException("The Plant Store does not respond.");
  }

  /** Returns nothing without a complete response: the plant may be stored or not. */
  private static Optional<HttpResponse<String>> send(HttpRequest request) {
    try {
      return Optional.of(
          CLIENT
              .sendAsync(request, HttpResponse.BodyHandlers.ofString())
              .orTimeout(TIMEOUT_SECONDS, TimeUnit.SECONDS)
              .join());
    } catch (CompletionException e) {
      return Optional.empty();
    }
  }

  private static JsonNode resultOf(HttpResponse<String> response, ObjectNode plant) {
    JsonNode result = parse(response.body());
    if (response.statusCode() == 200 && result.path("name").equals(plant.get("name"))) {
      return result;
    }
    if (result.path("error").asInt() == 40006) {
      throw new IllegalStateException("The id " + plant.get("id") + " is taken.");
    }
    throw new IllegalStateException(response.statusCode() + ": " + response.body());
  }

  private static JsonNode parse(String text) {
    try {
      return JSON.readTree(text);
    } catch (JsonProcessingException e) {
      return JSON.createObjectNode();
    }
  }

  private static long secondsToWait(HttpResponse<String> response) {
    return response
        .headers()
        .firstValue("Retry-After")
        .filter(value -> value.matches("[0-9]+"))
        .map(Long::valueOf)
        .orElse(1L);
  }
}
